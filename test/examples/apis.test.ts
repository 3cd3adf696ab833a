/** APIs of vendors by config alone: each example asks as its vendor wants it, and signs every digit of what it says. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { parse } from 'yaml';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

type Parameters = Readonly<Record<string, unknown>>;

/** What a client sends, what the vendor is asked and says, and what is signed: decoded values, or the error. */
interface Case {
  readonly endpoint: string;
  readonly send?: Parameters;
  /** Method, target and body. */
  readonly asks: string;
  /** The body of the vendor's answer, with status 200. */
  readonly says: string;
  readonly signs?: readonly bigint[];
  readonly refuses?: string;
}

const now = Date.now();
const seconds = Math.floor(now / 1000);
const week = 7 * 24 * 3600;
const usd = (digits: string) => [BigInt(digits)];
const UPSTREAM = 'API call failed';
const noValue = (path: string) => `No value found at path: ${path}`;

const coins = 'GET /api/v3/simple/price?ids=aave%2Ccardano&vs_currencies=usd';
const quote = 'GET /webservice/rest/events.json?event=Quote&symbol=AAPL';
const dxfeed = (bid: string, ask: string) => `{"status":"OK","Quote":{"AAPL":{"bidPrice":${bid},"askPrice":${ask}}}}`;
const spot = 'GET /v2/data/trades.v2/spot_exchange_rate/aave/usd?interval=1m';
const kaiko = (...prices: readonly string[]) =>
  `{"data":[${prices.map((price) => `{"timestamp":${now - 60_000},"price":${price}}`).join(',')}]}`;
const lists = 'GET /api/v1/live?currency=AUDUSD%2CBRLUSD&api_key=key';
const block = 'POST / {"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["finalized",false]}';
const query = 'query ($symbol: String!) { token(symbol: $symbol) { price } }';
const graph = `POST /graphql ${JSON.stringify({ query, variables: { symbol: 'ETH' } })}`;
const pyth = (time: number) => `{"parsed":[{"price":{"price":"206401","conf":"12","expo":-2,"publish_time":${time}}}]}`;

const CASES: Readonly<Record<string, readonly Case[]>> = {
  coingecko: [
    {
      endpoint: 'CoinGecko/price',
      send: { feed: 'AAVE/USD' },
      asks: coins,
      says: '{"aave":{"usd":91.230000000000000001},"cardano":{"usd":0.4}}',
      signs: usd('91230000000000000001'),
    },
    {
      endpoint: 'CoinGecko/price',
      send: { feed: 'ADA/USD' },
      asks: coins,
      says: '{"aave":{"usd":1}}',
      refuses: noValue('$.{feed}.usd'),
    },
    {
      endpoint: 'CoinGecko/price',
      send: { feed: 'ADA/USD' },
      asks: coins,
      says: '{"cardano":{"usd":0}}',
      refuses: UPSTREAM,
    },
  ],
  coinpaprika: [
    {
      endpoint: 'CoinPaprika/price',
      send: { feed: 'AAVE/USD' },
      asks: 'GET /v1/tickers/aave-new?quotes=USD',
      says: `{"last_updated":"${new Date(now).toISOString()}","quotes":{"USD":{"price":91.2}}}`,
      signs: usd('91200000000000000000'),
    },
    {
      endpoint: 'CoinPaprika/price',
      send: { feed: 'ADA/USD' },
      asks: 'GET /v1/tickers/ada-cardano?quotes=USD',
      says: `{"last_updated":"${new Date(now - week * 1000).toISOString()}","quotes":{"USD":{"price":0.4}}}`,
      refuses: UPSTREAM,
    },
  ],
  dxfeed: [
    {
      endpoint: 'dxFeed/quote',
      send: { symbol: 'AAPL' },
      asks: quote,
      says: dxfeed('0.1', '0.2'),
      signs: usd('150000000000000000'),
    },
    {
      endpoint: 'dxFeed/quote',
      send: { symbol: 'AAPL' },
      asks: quote,
      says: dxfeed('0.1', '"NaN"'),
      refuses: UPSTREAM,
    },
  ],
  finage: [
    {
      endpoint: 'Finage/stock',
      send: { symbol: 'AAPL' },
      asks: 'GET /last/trade/stock/AAPL',
      says: '{"price":213.55}',
      signs: usd('213550000000000000000'),
    },
    {
      endpoint: 'Finage/forex',
      send: { pair: 'EURUSD' },
      asks: 'GET /last/forex/EURUSD',
      says: '{"price":1.08}',
      signs: usd('1080000000000000000'),
    },
    {
      endpoint: 'Finage/crypto',
      send: { pair: 'BTCUSD' },
      asks: 'GET /last/crypto/BTCUSD',
      says: '{"error":"no access"}',
      refuses: UPSTREAM,
    },
  ],
  finnhub: [
    {
      endpoint: 'Finnhub/stock',
      send: { symbol: 'AAPL' },
      asks: 'GET /api/v1/stock/bidask?symbol=AAPL',
      says: '{"a":12345678901234567890.1,"b":12345678901234567892.3}',
      signs: usd('12345678901234567891200000000000000000'),
    },
    {
      endpoint: 'Finnhub/stock',
      send: { symbol: 'AAPL' },
      asks: 'GET /api/v1/stock/bidask?symbol=AAPL',
      says: '{"a":0,"b":1}',
      refuses: UPSTREAM,
    },
    {
      endpoint: 'Finnhub/forex',
      send: { base: 'EUR', quote: 'USD' },
      asks: 'GET /api/v1/forex/rates?base=EUR',
      says: '{"base":"EUR","quote":{"USD":1.08}}',
      signs: usd('1080000000000000000'),
    },
  ],
  iex: [
    {
      endpoint: 'IEX/quote',
      send: { symbol: 'AAPL' },
      asks: 'GET /v1/data/CORE/QUOTE/AAPL',
      says: '[{"latestPrice":213.55}]',
      signs: usd('213550000000000000000'),
    },
    {
      endpoint: 'IEX/quote',
      send: { symbol: 'NONE' },
      asks: 'GET /v1/data/CORE/QUOTE/NONE',
      says: '[null]',
      refuses: UPSTREAM,
    },
  ],
  kaiko: [
    {
      endpoint: 'Kaiko/spot',
      send: { base: 'aave', quote: 'usd' },
      asks: spot,
      says: kaiko('null', '"91.2"', '"90"'),
      signs: usd('91200000000000000000'),
    },
    {
      endpoint: 'Kaiko/spot',
      send: { base: 'aave', quote: 'usd' },
      asks: spot,
      says: kaiko('null', 'null'),
      refuses: noValue('$.data[?(@.price != null)].timestamp'),
    },
  ],
  'ncfx-crypto': [
    {
      endpoint: 'NCFX crypto/rate',
      send: { base: 'AAVE', quote: 'USD' },
      asks: 'GET /live/midrate/v1/rates?pairs=AAVE-USD%2CADA-USD',
      says: '{"rates":{"AAVE-USD":{"rate":91.2}}}',
      signs: usd('91200000000000000000'),
    },
  ],
  'ncfx-forex': [
    {
      endpoint: 'NCFX forex/rate',
      send: { base: 'AUD', quote: 'USD' },
      asks: 'GET /live/midrate/v1/rates/AUDUSD/SPT/D/O',
      says: '{"m":0.65}',
      signs: usd('650000000000000000'),
    },
  ],
  nodary: [
    {
      endpoint: 'Nodary/feed',
      send: { name: 'AAPL/USD' },
      asks: 'GET /feed/latest?name=AAPL%2FUSD',
      says: '{"value":-1.5}',
      signs: usd('-1500000000000000000'),
    },
    {
      endpoint: 'Nodary/exchange-rate',
      send: { name: 'rETH/ETH' },
      asks: 'GET /feed/latest?name=rETH%2FETH',
      says: '{"value":0}',
      refuses: UPSTREAM,
    },
  ],
  tradermade: [
    {
      endpoint: 'TraderMade/live',
      send: { base: 'BRL', quote: 'USD' },
      asks: lists,
      says: '{"quotes":[{"base_currency":"AUD","quote_currency":"USD","mid":0.65},{"base_currency":"BRL","quote_currency":"USD","mid":0.18}]}',
      signs: usd('180000000000000000'),
    },
  ],
  'twelve-data': [
    {
      endpoint: 'Twelve Data/price',
      send: { symbol: 'AAPL' },
      asks: 'GET /price?symbol=AAPL&dp=11',
      says: '{"price":"213.55000"}',
      signs: usd('213550000000000000000'),
    },
    {
      endpoint: 'Twelve Data/price',
      send: { symbol: 'AAPL' },
      asks: 'GET /price?symbol=AAPL&dp=11',
      says: '{"code":400,"message":"no","status":"error"}',
      refuses: UPSTREAM,
    },
  ],
  'json-rpc': [
    {
      endpoint: 'Ethereum/finalized-block',
      asks: block,
      says: '{"jsonrpc":"2.0","id":1,"result":{"number":"0x1406f40"}}',
      signs: [0x1406f40n],
    },
    {
      endpoint: 'Ethereum/finalized-block',
      asks: block,
      says: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000}}',
      refuses: UPSTREAM,
    },
  ],
  graphql: [
    {
      endpoint: 'GraphQL/price',
      send: { 'variables.symbol': 'ETH' },
      asks: graph,
      says: '{"data":{"token":{"price":"4000.5"}}}',
      signs: usd('4000500000000000000000'),
    },
    {
      endpoint: 'GraphQL/price',
      send: { 'variables.symbol': 'ETH' },
      asks: graph,
      says: '{"data":null,"errors":[{"message":"no"}]}',
      refuses: UPSTREAM,
    },
  ],
  pyth: [
    {
      endpoint: 'Pyth/price',
      send: { 'ids[]': '0xe6' },
      asks: 'GET /v2/updates/price/latest?ids%5B%5D=0xe6',
      says: pyth(seconds),
      signs: [206401n, -2n, BigInt(seconds)],
    },
    {
      endpoint: 'Pyth/price',
      send: { 'ids[]': '0xe6' },
      asks: 'GET /v2/updates/price/latest?ids%5B%5D=0xe6',
      says: pyth(seconds - week),
      refuses: UPSTREAM,
    },
  ],
};

const FOLDER = new URL('../../examples/apis/', import.meta.url);
const textOf = (name: string) => readFileSync(new URL(`${name}.yaml`, FOLDER), 'utf8');

describe('the examples of APIs', () => {
  it('are all run here, and have at most 40 lines', () => {
    const names = readdirSync(FOLDER).map((file) => file.replace(/\.yaml$/, ''));
    assert.deepEqual(names, Object.keys(CASES).toSorted());
    for (const name of names) assert.ok(textOf(name).trimEnd().split('\n').length <= 40, name);
  });

  for (const [name, cases] of Object.entries(CASES))
    describe(name, () => {
      for (const { endpoint, send, asks, says, signs, refuses } of cases)
        it(`${refuses ?? 'signs'}: ${says}`, async (t) => {
          const upstream = await upstreamFor(t);
          upstream.text('*', says);
          // The vendor's own address is the only thing that differs.
          const text = textOf(name).replaceAll(/url: https:\/\/[^/\s]+/g, `url: ${upstream.url}`);
          const env = Object.fromEntries(
            [...text.matchAll(/\$\{(\w+)\}/g)].map(([, variable = '']) => [variable, 'key']),
          );
          const service = await serviceFor(t, parse(text), { env });
          const response = await service.post(endpoint, send);
          const answer = (await response.json()) as { data: string; error?: string };
          const asked = upstream.requests.map(({ method, path, body }) => `${method} ${path}${body && ` ${body}`}`);
          assert.deepEqual([...new Set(asked)], [asks]);
          if (refuses !== undefined) return assert.deepEqual([response.status, answer.error], [502, refuses]);
          const { type } = parse(text).apis[0].endpoints[0].encoding;
          assert.deepEqual(
            [...AbiCoder.defaultAbiCoder().decode(type.split(','), answer.data)],
            signs,
            JSON.stringify(answer),
          );
        });
    });
});
