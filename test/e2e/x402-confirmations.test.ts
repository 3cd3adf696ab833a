/** A payment counts only with its confirmations, and not where the chain was reorganised. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { chainFor } from '../support/chain.ts';
import { assertRefused, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { payer, payNative, proofHeader, relay, termsOn, withResult } from '../support/x402.ts';

const PRICE = 1_000_000n;
const NOT_FOUND = 'Payment not found';
/** What is asked of every mined payment. */
const METHODS = ['eth_chainId', 'eth_getTransactionByHash', 'eth_getTransactionReceipt', 'eth_getBlockByNumber'];

describe('x402: `confirmations`, against reorganisations of the chain', async () => {
  const chain = await chainFor(suite);
  const alice = payer(chain, 2);
  const upstream = await upstreamFor(suite);
  upstream.json('/p', 1);
  const rpc = await upstreamFor(suite);
  const auth = termsOn({ chainId: chain.chainId, url: rpc.url }, PRICE);
  const auths = { none: auth, one: { ...auth, confirmations: 1 }, three: { ...auth, confirmations: 3 } };
  const endpoints = Object.fromEntries(
    Object.entries(auths).map(([name, auth]) => [name, { path: `/p?${name}`, auth }]),
  );
  const server = { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { server, api: { name: 'a' } }));

  beforeEach(() => {
    rpc.on('*', relay(chain.url));
    rpc.requests.length = 0;
    upstream.requests.length = 0;
  });

  const send = async (endpoint: string, txHash: string) =>
    service.post(`a/${endpoint}`, {}, await proofHeader(alice, service, `a/${endpoint}`, txHash));
  const notFound = async (endpoint: string, txHash: string) =>
    assertRefused(await send(endpoint, txHash), 401, NOT_FOUND);
  const mine = (blocks: number) => chain.provider.send('anvil_mine', [`0x${blocks.toString(16)}`]);
  /** Replaces that many blocks by others without transactions. */
  const reorganise = (depth: number) => chain.provider.send('anvil_reorg', [depth, []]);
  const asked = () => {
    const methods: string[] = rpc.requests.map(({ body }) => JSON.parse(body).method);
    // The first three are asked at once, and may arrive in any order.
    return [...methods.slice(0, 3).toSorted(), ...methods.slice(3)];
  };
  /** Has the node say this of the length of its chain. */
  const counting = (result: unknown) => {
    const lie = withResult('eth_blockNumber', () => result);
    rpc.on('*', relay(chain.url, lie));
  };
  it('the payment counts from the block on in which it has so many, its own included', async () => {
    const paid = await payNative(alice, PRICE);
    await notFound('three', paid);
    await mine(1);
    await notFound('three', paid);
    assert.deepEqual(upstream.requests, []);
    await mine(1);
    await verifyRaw(await send('three', paid), TEST_ADDRESS);
    await assertRefused(await send('three', paid), 401, 'Payment already used');
  });

  it('one, which is the default, is its own block and costs no question more', async () => {
    for (const endpoint of ['none', 'one']) {
      const paid = await payNative(alice, PRICE);
      rpc.requests.length = 0;
      await verifyRaw(await send(endpoint, paid), TEST_ADDRESS);
      assert.deepEqual(asked(), METHODS);
    }
  });

  it('more than one cost one question more, before it is seen that the payment is still there', async () => {
    const paid = await payNative(alice, PRICE);
    await mine(2);
    await verifyRaw(await send('three', paid), TEST_ADDRESS);
    assert.deepEqual(asked(), METHODS.toSpliced(3, 0, 'eth_blockNumber'));
  });

  it('a payment that a reorganisation took out of the chain never counts', async () => {
    const paid = await payNative(alice, PRICE);
    await mine(1);
    await notFound('three', paid);
    await reorganise(2);
    await mine(5);
    await notFound('three', paid);
    await notFound('one', paid);
    assert.deepEqual(upstream.requests, []);
  });

  it('nor one that is taken out while the chain is asked', async () => {
    for (const method of ['eth_getTransactionReceipt', 'eth_blockNumber']) {
      const paid = await payNative(alice, PRICE);
      await mine(4);
      const forward = relay(chain.url);
      rpc.on('*', async (req, res, recorded) => {
        if (JSON.parse(recorded.body).method !== method) return forward(req, res, recorded);
        const text = await (await postText(chain.url, recorded.body)).text();
        await reorganise(5);
        res.writeHead(200, { 'content-type': 'application/json' }).end(text);
      });
      await notFound('three', paid);
    }
    assert.deepEqual(upstream.requests, []);
  });

  it('a payment that comes back in another block has its confirmations from there on', async () => {
    const paid = await payNative(alice, PRICE);
    const raw = await chain.provider.send('eth_getRawTransactionByHash', [paid]);
    await mine(2);
    await chain.provider.send('anvil_reorg', [3, [[raw, 2]]]);
    await notFound('three', paid);
    await mine(2);
    await verifyRaw(await send('three', paid), TEST_ADDRESS);
  });

  it('a node that does not say how long its chain is ends in a clear 401, and burns nothing', async () => {
    const paid = await payNative(alice, PRICE);
    await mine(2);
    for (const result of [null, '', '0x', '3', 3, '0x03', {}, []]) {
      counting(result);
      await assertRefused(await send('three', paid), 401, 'Payment verification unavailable');
    }
    counting('0x0');
    await notFound('three', paid);
    rpc.on('*', relay(chain.url));
    await verifyRaw(await send('three', paid), TEST_ADDRESS);
  });
});
