/** The example contract accepts the answers to one request only. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { type BaseContract, keccak256, Signature, toUtf8Bytes, Wallet, ZeroAddress } from 'ethers';
import { requestHashOf } from '../../verify/index.ts';
import { chainFor } from '../support/chain.ts';
import { CURVE_ORDER, contractsOf, errorText, revertOf } from '../support/contract-calls.ts';
import { suite } from '../support/lifetime.ts';
import { type AnswerWithReceipt, type Asked, answerBy, verifyReceipt } from '../support/receipts.ts';
import { oneApi, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const BTC = { symbol: 'BTCUSD' };
const ETH = { symbol: 'ETHUSD' };
const PRICES: Readonly<Record<string, number>> = { BTCUSD: 64_000, ETHUSD: 3000 };

const { deploy, errorOf, interfaceOf } = await contractsOf(
  'verify/contracts/SignedDataVerifier.sol',
  'examples/contracts/PinnedPriceConsumer.sol',
);
const error = (name: string, ...args: unknown[]) => errorOf('PinnedPriceConsumer', name, args);

/** What `deliver` takes of an answer. */
function argumentsOf({ timestamp, data, signature, receipt }: AnswerWithReceipt) {
  return [timestamp, data, signature, receipt.signature] as const;
}

describe('the example consumer of one request, and answers of a running service', async () => {
  let consumer: BaseContract;

  const upstream = await upstreamFor(suite);
  upstream.on('*', (req, res) => {
    const symbol = new URL(req.url ?? '', 'http://x').searchParams.get('symbol') ?? '';
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ price: PRICES[symbol] }));
  });
  const encoding = { type: 'int256', path: '$.price' };
  const parameters = [{ name: 'symbol', required: true }];
  const endpoints = { price: { encoding, parameters }, twin: { encoding, parameters } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { api: { receipt: true } }));
  const endpointId = service.ids['api/price'] ?? '';
  const chain = await chainFor(suite);
  const deliverer = await chain.provider.getSigner(1);
  const verifier = await deploy('SignedDataVerifier', deliverer);

  const pinning = (asked: Asked, node = TEST_ADDRESS) => [verifier, node, endpointId, requestHashOf(asked)];
  beforeEach(async () => {
    consumer = await deploy('PinnedPriceConsumer', deliverer, ...pinning(BTC));
  });

  /** An answer of the service. */
  const answerTo = async (parameters: Asked, endpoint = 'price') =>
    verifyReceipt(await service.post(`api/${endpoint}`, parameters), parameters, TEST_ADDRESS);

  /** An answer of any time that a service with that key could give. */
  const answerOf = (timestamp: number, { key = TEST_KEY, parameters = BTC, id = endpointId } = {}) => {
    const data = `0x${(64_000).toString(16).padStart(64, '0')}`;
    return answerBy(new Wallet(key), { endpointId: id, timestamp, content: { data }, parameters });
  };

  const deliver = async (answer: AnswerWithReceipt) =>
    (await consumer.getFunction('deliver').send(...argumentsOf(answer))).wait();
  const refusal = (answer: AnswerWithReceipt) =>
    revertOf(consumer.getFunction('deliver').staticCall(...argumentsOf(answer)));
  const price = async () => consumer.getFunction('price').staticCall();
  /** Of the receipt's signature, where it is of something else: an address that nobody has. */
  const isWrongReceipt = (revert: string) => {
    const parsed = interfaceOf('PinnedPriceConsumer').parseError(revert);
    assert.equal(parsed?.name, 'WrongReceipt');
    assert.notEqual(parsed?.args.signer, TEST_ADDRESS);
    assert.notEqual(parsed?.args.signer, ZeroAddress);
  };
  const now = async () => (await chain.provider.getBlock('latest'))?.timestamp ?? 0;

  it('pins what it was made for, and has no price at first', async () => {
    const read = (name: string) => consumer.getFunction(name).staticCall();
    const all = await Promise.all(['VERIFIER', 'NODE', 'ENDPOINT_ID', 'REQUEST_HASH', 'updatedAt'].map(read));
    const hash = keccak256(toUtf8Bytes('{"parameters":{"symbol":"BTCUSD"}}'));
    assert.deepEqual(all, [await verifier.getAddress(), TEST_ADDRESS, endpointId, hash, 0n]);
  });

  it('accepts the answer to its request, from anyone, once', async () => {
    const answer = await answerTo(BTC);
    const receipt = await deliver(answer);
    assert.equal(receipt?.status, 1);
    assert.equal(await price(), 64_000n);
    assert.equal(await consumer.getFunction('updatedAt').staticCall(), BigInt(answer.timestamp));
    assert.equal(await refusal(answer), errorText('Already fulfilled'));
    const later = await answerOf(answer.timestamp + 1);
    assert.equal((await deliver(later))?.status, 1);
    assert.equal(await refusal(answer), errorText('Already fulfilled'));
  });

  it('reverts for the answer to another request of its endpoint, which a signature alone lets pass', async () => {
    const answer = await answerTo(ETH);
    isWrongReceipt(await refusal(answer));
    assert.equal(await price(), 0n);
    const accepts = await deploy('PinnedPriceConsumer', deliverer, ...pinning(ETH));
    await (await accepts.getFunction('deliver').send(...argumentsOf(answer))).wait();
    assert.equal(await accepts.getFunction('price').staticCall(), 3000n);
  });

  it('reverts for the receipt of another answer', async () => {
    const timestamp = await now();
    const eth = await answerTo(ETH);
    const btc = await answerTo(BTC);
    isWrongReceipt(await refusal({ ...eth, receipt: btc.receipt }));
    const other = await answerOf(timestamp - 1);
    isWrongReceipt(await refusal({ ...(await answerOf(timestamp)), receipt: other.receipt }));
    isWrongReceipt(await refusal(await answerTo(BTC, 'twin')));
  });

  it('reverts for an answer that its receipt does not go with', async () => {
    const timestamp = await now();
    const older = await answerOf(timestamp - 1);
    const newer = await answerOf(timestamp);
    assert.equal(await refusal({ ...newer, signature: older.signature }), errorText('Signature mismatch'));
    const stranger = await answerOf(timestamp, { key: `0x${'11'.repeat(32)}` });
    assert.equal(await refusal({ ...newer, signature: stranger.signature }), errorText('Signature mismatch'));
  });

  it('reverts for an altered timestamp and altered data', async () => {
    const answer = await answerOf(await now());
    isWrongReceipt(await refusal({ ...answer, timestamp: answer.timestamp - 1 }));
    isWrongReceipt(await refusal({ ...answer, data: answer.data?.toString().replace(/.$/, '1') ?? '' }));
    isWrongReceipt(await refusal({ ...answer, data: `${answer.data}00` }));
  });

  it('reverts for another signer, and one of the two', async () => {
    const stranger = new Wallet(`0x${'11'.repeat(32)}`);
    const answer = await answerOf(await now(), { key: stranger.privateKey });
    const wrong = error('WrongReceipt', stranger.address);
    assert.equal(await refusal(answer), wrong);
    assert.equal(await refusal({ ...(await answerOf(answer.timestamp)), receipt: answer.receipt }), wrong);
  });

  it('reverts for an answer that is too old, from the future, or not newer than what it has', async () => {
    const time = (await now()) + 1000;
    await chain.provider.send('evm_setNextBlockTimestamp', [time]);
    await chain.provider.send('evm_mine', []);
    assert.equal(await refusal(await answerOf(time - 301)), error('TooOld', time - 301));
    assert.equal(await refusal(await answerOf(time + 61)), error('FromTheFuture', time + 61));
    await deliver(await answerOf(time));
    assert.equal(await refusal(await answerOf(time - 1)), error('NotNewer', time - 1));
  });

  it('reverts for what comes past `deliver`, by the verifier or without it', async () => {
    const { timestamp, data, signature } = await answerTo(BTC);
    const callback = await consumer.getAddress();
    const { selector } = consumer.getFunction('onPrice').fragment;
    const args = [TEST_ADDRESS, endpointId, timestamp, data, signature, callback, selector];
    const digest = await verifier.getFunction('digestOf').staticCall(endpointId, timestamp, data);
    const past = revertOf(verifier.getFunction('verifyAndFulfill').staticCall(...args));
    assert.equal(await past, error('NoReceipt', digest));
    for (const claimed of [digest, `0x${'00'.repeat(32)}`]) {
      const call = consumer.getFunction('onPrice').staticCall(claimed, TEST_ADDRESS, endpointId, timestamp, data);
      assert.equal(await revertOf(call), error('NotTheVerifier', deliverer.address));
    }
  });

  it('reverts for what is no signature that counts, also where no signer was pinned', async () => {
    const answer = await answerOf(await now());
    const { r, s, v } = Signature.from(answer.receipt.signature);
    const word = (value: bigint) => value.toString(16).padStart(64, '0');
    const rs = `${r}${s.slice(2)}`;
    const high = `${r}${word(CURVE_ORDER - BigInt(s))}${(v === 27 ? 28 : 27).toString(16)}`;
    const wrong = ['0x', rs, `${rs}${v.toString(16)}00`, `${rs}00`, high, `0x${'00'.repeat(64)}1b`];
    const anyone = await deploy('PinnedPriceConsumer', deliverer, ...pinning(BTC, ZeroAddress));
    for (const signature of wrong) {
      const forged = { ...answer, receipt: { ...answer.receipt, signature } };
      assert.equal(await refusal(forged), error('WrongReceipt', ZeroAddress));
      const call = anyone.getFunction('deliver').staticCall(...argumentsOf(forged));
      assert.equal(await revertOf(call), error('WrongReceipt', ZeroAddress));
    }
  });
});
