/** Views ask real services by ERC-3668, through viem and ethers as they are, and take no answer but a good one to their own question. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { beforeEach, describe, it } from 'node:test';
import { AbiCoder, type BaseContract, Interface, JsonRpcProvider } from 'ethers';
import { createPublicClient, http, parseAbi } from 'viem';
import { chainFor } from '../support/chain.ts';
import { hostOf } from '../support/https.ts';
import { suite } from '../support/lifetime.ts';
import { type Answer, answerOf, deploy, errorOf, signer } from '../support/quorum.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { compile } from '../support/solidity.ts';
import { startUpstream, upstreamFor } from '../support/upstream.ts';

const { PriceReader } = await compile('examples/contracts/PriceReader.sol');
const { MedianReader } = await compile('examples/contracts/MedianReader.sol');
const PRICES: Readonly<Record<string, number>> = { ETHUSD: 3000, BTCUSD: 64_000 };
const abi = parseAbi([
  'function price(string symbol) view returns (int256 value, uint256 timestamp)',
  'function price() view returns (int256 value, uint256 timestamp)',
  'error TooFewAnswers(uint256 answers, uint256 threshold)',
]);

describe('SignedDataReader.sol', async () => {
  const services: RunningService[] = [];

  const upstream = await upstreamFor(suite);
  upstream.on('*', (req, res) => {
    const symbol = new URL(req.url ?? '', 'http://x').searchParams.get('symbol') ?? 'ETHUSD';
    const price = (PRICES[symbol] ?? 0) + Number(req.headers['x-operator']);
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ price }));
  });
  const encoding = { type: 'int256', path: '$.price' };
  const endpoints = { price: { encoding, parameters: [{ name: 'symbol' }] }, median: { encoding } };
  for (const n of [0, 1, 2]) {
    const api = { receipt: true, headers: { 'X-Operator': String(n * 10) } };
    const config = oneApi(upstream.url, endpoints, { api, settings: { ccipRead: true } });
    services.push(await serviceFor(suite, config, { env: { SERVICE_PRIVATE_KEY: signer(n).privateKey } }));
  }
  const gateways = services.map(({ url }) => `${url}/ccip`);
  const id = services[0]?.ids['api/price'] ?? '';
  const median = services[0]?.ids['api/median'] ?? '';
  /** Answers what a gateway said, changed by the path, or in place of it. */
  const liar = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    if (req.url === '/busy') return res.writeHead(503, { 'Retry-After': '1' }).end('{"message":"Too Many Requests"}');
    const { data, sender } = JSON.parse(body);
    const asked = req.url === '/other' ? data.replace(hex('ETHUSD'), hex('BTCUSD')) : data;
    const response = await fetch(gateways[0] ?? '', { method: 'POST', body: JSON.stringify({ data: asked, sender }) });
    const text = await response.text();
    // 3000 is 0xbb8, and 3001 the one that it says. An endpoint ID is random, and could hold 0bb8 without the zeros.
    return res
      .writeHead(response.status, { 'Content-Type': 'application/json' })
      .end(req.url === '/tamper' ? text.replace('00000bb8', '00000bb9') : text);
  });
  const lies = `http://${await hostOf(suite, liar)}`;
  const chain = await chainFor(suite);
  const deployer = await chain.provider.getSigner(0);

  // Answers must not be too far ahead of the latest block.
  beforeEach(() => chain.provider.send('evm_mine', []));

  const coder = AbiCoder.defaultAbiCoder();
  const extraOf = (endpointId: string, parameters: object) =>
    coder.encode(['bytes32', 'string'], [endpointId, JSON.stringify(parameters)]);
  const responseOf = (...members: readonly unknown[]) =>
    coder.encode(['address', 'bytes32', 'uint256', 'bytes', 'bytes', 'bytes'], members);
  const hex = (text: string) => Buffer.from(text).toString('hex');
  const priceReader = (urls: readonly string[]) => deploy(PriceReader, deployer, signer(0).address, id, urls);
  const byEthers = async (contract: BaseContract, symbol = 'ETHUSD') => {
    const to = await contract.getAddress();
    const data = contract.interface.encodeFunctionData('price', [symbol]);
    const bytes = await new JsonRpcProvider(chain.url).call({ to, data, enableCcipRead: true });
    return contract.interface.decodeFunctionResult('price', bytes)[0];
  };
  const byViem = async (contract: BaseContract, ...args: readonly [string] | readonly []) => {
    const address = (await contract.getAddress()) as `0x${string}`;
    const client = createPublicClient({ transport: http(chain.url) });
    const [value] = await client.readContract({ address, abi, functionName: 'price', args });
    return value;
  };

  it('is read by viem and ethers, with GET and POST, also where the first gateway is busy', async () => {
    const [post = ''] = gateways;
    for (const url of [post, `${post}/{sender}/{data}.json`]) {
      const reader = await priceReader([`${lies}/busy`, url]);
      assert.equal(await byEthers(reader), 3000n);
      assert.equal(await byEthers(reader, 'BTCUSD'), 64_000n);
      assert.equal(await byViem(reader, 'ETHUSD'), 3000n);
    }
  });

  it('reverts where a gateway changes an answer, gives that to another question, or that of another signer', async () => {
    const cases = {
      [`${lies}/tamper`]: 'WrongSigner',
      [`${lies}/other`]: 'WrongReceipt',
      [gateways[1] ?? '']: 'UnknownSigner',
    };
    for (const [url, error] of Object.entries(cases)) {
      const reader = await priceReader([url]);
      assert.match(await errorOf(byEthers(reader), reader.interface), new RegExp(`^${error}\\(`));
      await assert.rejects(byViem(reader, 'ETHUSD'));
    }
  });

  it('takes no answer that is too old, too far ahead, or without a receipt', async () => {
    const reader = await priceReader(gateways);
    const now = (await chain.provider.getBlock('latest'))?.timestamp ?? 0;
    const parameters = { symbol: 'ETHUSD' };
    const extra = extraOf(id, parameters);
    const { address } = signer(0);
    const refusal = async (answer: Answer) => {
      const { node, endpointId, timestamp, data, signature, receiptSignature } = answer;
      const response = responseOf(node, endpointId, timestamp, data, signature, receiptSignature);
      return errorOf(reader.getFunction('onSignedData').staticCall(response, extra), reader.interface);
    };
    const asked = { endpointId: id, parameters };
    assert.equal(await refusal(await answerOf(0, now - 1000, 7n, asked)), `Stale(${address},${now - 1000})`);
    assert.equal(await refusal(await answerOf(0, now + 1000, 7n, asked)), `FromTheFuture(${address},${now + 1000})`);
    assert.equal(await refusal(await answerOf(0, now, 7n, { endpointId: id })), `InvalidReceipt(${address},1)`);
    assert.equal(
      await refusal(await answerOf(0, now, 7n, { endpointId: median, parameters })),
      `OtherEndpoint(${address},${median})`,
    );
  });

  it('takes nothing from nobody, where somebody forgot to name the signer', async () => {
    const nobody = `0x${'00'.repeat(20)}`;
    const reader = await deploy(PriceReader, deployer, nobody, id, gateways);
    const now = (await chain.provider.getBlock('latest'))?.timestamp ?? 0;
    const signature = `0x${'00'.repeat(64)}1b`;
    const response = responseOf(nobody, id, now, '0x', signature, signature);
    const call = reader.getFunction('onSignedData').staticCall(response, extraOf(id, {}));
    assert.equal(await errorOf(call, reader.interface), `InvalidSignature(${nobody},4)`);
  });

  it('knows no endpoint but its own, whoever calls back with another one', async () => {
    const reader = await priceReader(gateways.slice(0, 1));
    const gateway = new Interface(['function ask(bytes32 id, string parameters)']);
    const data = gateway.encodeFunctionData('ask', [median, '{}']);
    const body = JSON.stringify({ data, sender: await reader.getAddress() });
    const answer = JSON.parse(await (await fetch(gateways[0] ?? '', { method: 'POST', body })).text());
    const call = reader.getFunction('onSignedData').staticCall(answer.data, extraOf(median, {}));
    assert.equal(await errorOf(call, reader.interface), `UnknownSigner(${signer(0).address})`);
  });

  it('takes the median of two of three through the batch gateway of viem, one of them down or lying', async () => {
    const all = [0, 1, 2].map((n) => signer(n).address);
    const reader = (urls: readonly string[]) => deploy(MedianReader, deployer, median, 2, all, urls);
    const [first = '', second = '', third = ''] = gateways;
    assert.equal(await byViem(await reader([first, second, third])), 3010n);
    assert.equal(await byViem(await reader([`${lies}/busy`, second, third])), 3015n);
    assert.equal(await byViem(await reader([`${lies}/tamper`, second, third])), 3015n);
    const gone = await startUpstream();
    await gone.close();
    assert.equal(await byViem(await reader([first, `${gone.url}/ccip`, third])), 3010n);
    // One operator behind two gateways is one signer.
    for (const urls of [
      [first, first, `${lies}/busy`],
      [`${lies}/tamper`, second, second],
    ])
      await assert.rejects(
        byViem(await reader(urls)),
        /TooFewAnswers\(uint256 answers, uint256 threshold\)\s+\(1, 2\)/,
      );
  });
});
