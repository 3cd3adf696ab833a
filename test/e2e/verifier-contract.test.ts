/** The verifier contract accepts what the service signs, and nothing that was changed. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import {
  type BaseContract,
  getBytes,
  Interface,
  keccak256,
  type LogDescription,
  Signature,
  solidityPackedKeccak256,
  toUtf8Bytes,
  Wallet,
  ZeroAddress,
} from 'ethers';
import { chainFor } from '../support/chain.ts';
import { CURVE_ORDER, contractsOf, errorText, revertOf } from '../support/contract-calls.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { type SignedBody, stable, verifyEncoded, verifyRaw } from '../support/verify.ts';

const PRICE = 3_141_592_653_589_793_238n;
const NO_REASON = '0x';

/** What `verifyAndFulfill` takes of an answer, with whatever else is in it. */
type Answer = SignedBody & { readonly data: string };
type Signed = Pick<Answer, 'endpointId' | 'timestamp' | 'data'>;

interface Target {
  readonly callback: string;
  readonly selector: string;
}

const { deploy, errorOf, interfaces } = await contractsOf(
  'verify/contracts/SignedDataVerifier.sol',
  'examples/contracts/PriceConsumer.sol',
  'test/support/contracts/Callbacks.sol',
);

async function target(contract: BaseContract, name: string): Promise<Target> {
  return { callback: await contract.getAddress(), selector: contract.getFunction(name).fragment.selector };
}

function argumentsOf({ node, endpointId, timestamp, data, signature }: Answer, { callback, selector }: Target) {
  return [node, endpointId, timestamp, data, signature, callback, selector] as const;
}

/** Sends the delivery and returns its decoded logs in order. */
async function deliver(verifier: BaseContract, answer: Answer, to: Target): Promise<LogDescription[]> {
  const sent = await verifier.getFunction('verifyAndFulfill').send(...argumentsOf(answer, to));
  const receipt = await sent.wait();
  assert.equal(receipt?.status, 1);
  return (receipt?.logs ?? []).map((log) => {
    const [parsed] = interfaces.flatMap((each) => each.parseLog(log) ?? []);
    assert.ok(parsed, 'a log of a known event');
    return parsed;
  });
}

function refusal(verifier: BaseContract, answer: Answer, to: Target): Promise<string> {
  return revertOf(verifier.getFunction('verifyAndFulfill').staticCall(...argumentsOf(answer, to)));
}

function digestOf({ endpointId, timestamp, data }: Signed): string {
  return solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
}

/** What all events say of a delivery. */
function aboutOf(answer: Answer): unknown[] {
  return [digestOf(answer), TEST_ADDRESS, answer.endpointId, BigInt(answer.timestamp)];
}

const told = ({ name, args }: LogDescription) => [name, ...args.toArray()];
const word = (value: bigint | number) => value.toString(16).padStart(64, '0');
const ALREADY = errorText('Already fulfilled');

/** An answer that a service with that key could have given. */
async function signedBy(key: string, signed: Signed): Promise<Answer> {
  const wallet = new Wallet(key);
  return { ...signed, node: wallet.address, signature: await wallet.signMessage(getBytes(digestOf(signed))) };
}

describe('the verifier contract and answers of a running service', async () => {
  const [chain, upstream] = await Promise.all([chainFor(suite), upstreamFor(suite)]);
  for (const path of ['/price', '/other', '/cached']) upstream.json(path, { price: '3.141592653589793238' });
  upstream.json('/raw', { b: [1.5, null, 'ü'], a: { d: true, c: -1 } });
  const encoding = { type: 'int256', path: '$.price', times: '1e18' };
  const endpoints = {
    price: { encoding },
    other: { encoding },
    cached: { encoding, cache: { maxAge: 600_000 } },
    raw: {},
  };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints));
  const deliverer = await chain.provider.getSigner(1);
  const verifier = await deploy('SignedDataVerifier', deliverer);
  const recorder = await deploy('Recorder', deliverer);
  const recording = await target(recorder, 'receiveAnswer');
  const elsewhere = await target(recorder, 'receiveElsewhere');
  const failing = await deploy('Failing', deliverer);

  const price = async (endpoint = 'price') => verifyEncoded(await service.post(`api/${endpoint}`), TEST_ADDRESS);

  /** No two tests deliver the same answer, although answers of one second are the same. */
  let moments = 1_700_000_000;
  const fresh = () =>
    signedBy(TEST_KEY, { endpointId: service.ids['api/price'] ?? '', timestamp: moments++, data: '0x1234' });

  // Here: the body of a suite within runs beside tests, and the node gives two transactions of one account the same nonce.
  const again = await fresh();
  const reentrant = await deploy('Reentrant', deliverer, again.signature);

  it('an answer is accepted once and refused from then on', async () => {
    const consumer = await deploy('PriceConsumer', deliverer, verifier, TEST_ADDRESS, service.ids['api/price']);
    const to = await target(consumer, 'onPrice');
    const answer = await price();
    const logs = await deliver(verifier, answer, to);
    const moment = BigInt(answer.timestamp);
    assert.deepEqual(logs.map(told), [
      ['Fulfilled', ...aboutOf(answer), to.callback, to.selector],
      ['PriceUpdated', PRICE, moment, digestOf(answer)],
    ]);
    const kept = ['price', 'updatedAt'].map((name) => consumer.getFunction(name).staticCall());
    assert.deepEqual(await Promise.all(kept), [PRICE, moment]);

    const another = verifier.connect(await chain.provider.getSigner(2));
    for (const by of [verifier, verifier, another]) assert.equal(await refusal(by, answer, to), ALREADY);
  });

  it('another callback and another selector are other deliveries', async () => {
    const answer = await fresh();
    await deliver(verifier, answer, recording);
    await deliver(verifier, answer, await target(await deploy('Recorder', deliverer), 'receiveAnswer'));
    await deliver(verifier, answer, elsewhere);
    for (const to of [recording, elsewhere]) assert.equal(await refusal(verifier, answer, to), ALREADY);
  });

  it('another signer and another digest are other deliveries', async () => {
    const answer = await fresh();
    await deliver(verifier, answer, recording);
    await deliver(verifier, await signedBy(`0x${'11'.repeat(32)}`, answer), recording);
    await deliver(verifier, await signedBy(TEST_KEY, { ...answer, data: '0x' }), recording);
  });

  it('a second signature of the same digest is the same delivery', async () => {
    const answer = await fresh();
    await deliver(verifier, answer, recording);
    // Any nonce makes a valid signature: k = 2, whose point has this x and an even y.
    const r = 0xc6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5n;
    const signature = signWithNonceTwo(TEST_KEY, digestOf(answer), r);
    assert.notEqual(signature, answer.signature);
    assert.equal(await refusal(verifier, { ...answer, signature }, recording), ALREADY);
  });

  it('the callback gets the digest, the node, the endpoint, the timestamp and the data, from the verifier', async () => {
    const answer = await price();
    const logs = await deliver(verifier, answer, recording);
    assert.deepEqual(logs.map(told), [
      ['Fulfilled', ...aboutOf(answer), recording.callback, recording.selector],
      ['Received', await verifier.getAddress(), ...aboutOf(answer), `0x${word(PRICE)}`],
    ]);
  });

  it('data of any length arrives as it was signed', async () => {
    for (const length of [0, 1, 31, 32, 33, 5000]) {
      const data = `0x${'5a'.repeat(length)}`;
      const answer = await signedBy(TEST_KEY, { ...(await fresh()), data });
      const [, received] = await deliver(verifier, answer, recording);
      assert.deepEqual([received?.args.digest, received?.args.data], [digestOf(answer), data]);
    }
  });

  it('the views tell the digest and whether a delivery has been made', async () => {
    const answer = await fresh();
    const { endpointId, timestamp, data } = answer;
    const digest = digestOf(answer);
    assert.equal(await verifier.getFunction('digestOf').staticCall(endpointId, timestamp, data), digest);
    const made = (node: string, { callback, selector }: Target) =>
      verifier.getFunction('isFulfilled').staticCall(digest, node, callback, selector);
    assert.equal(await made(TEST_ADDRESS, recording), false);
    await deliver(verifier, answer, recording);
    assert.equal(await made(TEST_ADDRESS, recording), true);
    assert.equal(await made(ZeroAddress, recording), false);
    assert.equal(await made(TEST_ADDRESS, elsewhere), false);
    assert.equal(await made(TEST_ADDRESS, { ...recording, callback: TEST_ADDRESS }), false);
  });

  it('a raw answer is delivered as the hash of its canonical JSON text', async () => {
    const body = await verifyRaw(await service.post('api/raw'), TEST_ADDRESS);
    /** As the specification has raw answers signed (Signature, 2). */
    const answer = { ...body, data: keccak256(toUtf8Bytes(stable(body.rawData))) };
    const text = '{"a":{"c":-1,"d":true},"b":[1.5,null,"ü"]}';
    const [, received] = await deliver(verifier, answer, recording);
    assert.equal(received?.args.data, keccak256(toUtf8Bytes(text)));
    assert.equal(await refusal(verifier, answer, recording), ALREADY);
    const asText = { ...answer, data: `0x${Buffer.from(text).toString('hex')}` };
    assert.equal(await refusal(verifier, asText, recording), errorText('Signature mismatch'));
  });

  it('all who share a cached answer share its one delivery', async () => {
    const first = await price('cached');
    const second = await price('cached');
    assert.deepEqual(second, first);
    await deliver(verifier, first, recording);
    assert.equal(await refusal(verifier, second, recording), ALREADY);
  });

  describe('refuses', () => {
    const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
    const withSignature = (change: (signature: Signature) => string) => (answer: Answer) => ({
      ...answer,
      signature: change(Signature.from(answer.signature)),
    });
    const otherV = (v: number) => (v === 27 ? '1c' : '1b');
    /** By the reason, what is refused for it. */
    const cases: Readonly<Record<string, Readonly<Record<string, (answer: Answer) => Answer>>>> = {
      'Signature mismatch': {
        'another node': (answer) => ({ ...answer, node: other }),
        'the zero address as node': (answer) => ({ ...answer, node: ZeroAddress }),
        'tampered data': (answer) => ({ ...answer, data: answer.data.replace(/6$/, '7') }),
        'longer data': (answer) => ({ ...answer, data: `${answer.data}00` }),
        'no data': (answer) => ({ ...answer, data: '0x' }),
        'a tampered timestamp': (answer) => ({ ...answer, timestamp: answer.timestamp + 1 }),
        "another endpoint's ID": (answer) => ({ ...answer, endpointId: service.ids['api/other'] ?? '' }),
        'the other v': withSignature(({ r, s, v }) => `${r}${s.slice(2)}${otherV(v)}`),
      },
      'Invalid signature s': {
        'the other signature that the curve has for it, with n - s': withSignature(
          ({ r, s, v }) => `${r}${word(CURVE_ORDER - BigInt(s))}${otherV(v)}`,
        ),
      },
      'Invalid signature length': {
        'a compact signature (EIP-2098)': withSignature(({ compactSerialized }) => compactSerialized),
        'a signature without v': withSignature(({ r, s }) => `${r}${s.slice(2)}`),
        'a signature with a byte too many': withSignature(({ serialized }) => `${serialized}00`),
        'an empty signature': withSignature(() => '0x'),
      },
      'Invalid signature v': {
        'a bare recovery id as v': withSignature(({ r, s, yParity }) => `${r}${s.slice(2)}0${yParity}`),
        'v 29': withSignature(({ r, s }) => `${r}${s.slice(2)}1d`),
      },
      'Invalid signature': Object.fromEntries(
        Object.entries({
          'what recovers to the zero address, which is the node given': 0,
          'an r that is no point of the curve, with the zero address as node': 5,
        }).map(([what, r]) => [
          what,
          (answer) => ({ ...answer, node: ZeroAddress, signature: `0x${word(r)}${word(1)}1b` }),
        ]),
      ),
    };
    for (const [reason, changes] of Object.entries(cases)) {
      for (const [what, change] of Object.entries(changes)) {
        it(what, async () => {
          assert.equal(await refusal(verifier, change(await price()), recording), errorText(reason));
        });
      }
    }

    const noContracts = {
      'an account without code': other,
      'the zero address': ZeroAddress,
      'a precompiled contract': `0x${'0'.repeat(39)}4`,
    };
    for (const [what, callback] of Object.entries(noContracts)) {
      it(`${what} as callback`, async () => {
        const to = { ...recording, callback };
        assert.equal(await refusal(verifier, await price(), to), errorText('Callback has no code'));
      });
    }

    it('ether', async () => {
      const call = verifier.getFunction('verifyAndFulfill');
      const { data } = await call.populateTransaction(...argumentsOf(await fresh(), recording));
      const to = await verifier.getAddress();
      assert.equal(await revertOf(deliverer.call({ to, data, value: 1n })), NO_REASON);
      assert.equal(await revertOf(deliverer.call({ to, value: 1n })), NO_REASON);
    });
  });

  it('as its own callback it can be made to do nothing', async () => {
    const answer = await fresh();
    for (const name of ['verifyAndFulfill', 'isFulfilled', 'digestOf'])
      assert.equal(await refusal(verifier, answer, await target(verifier, name)), NO_REASON, name);
  });

  describe('a callback that fails makes the delivery fail', () => {
    const reasons: [string, string, string][] = [
      ['with a text', 'withString', errorText('not today')],
      ['with an error of its own', 'withCustomError', errorOf('Failing', 'Rejected', [7, 'closed'])],
      ['with a panic', 'withPanic', new Interface(['error Panic(uint256)']).encodeErrorResult('Panic', [1])],
      ['without a reason', 'withNothing', NO_REASON],
      ['with many bytes', 'withMuch', `0x${'ff'.repeat(32)}${'00'.repeat(0x2000 - 32)}`],
      ['by using up its gas', 'withoutGas', NO_REASON],
    ];
    for (const [how, name, reason] of reasons) {
      it(`${how}, which is what the deliverer sees`, async () => {
        assert.equal(await refusal(verifier, await fresh(), await target(failing, name)), reason);
      });
    }

    it('with a selector that it does not have', async () => {
      const to = { callback: await failing.getAddress(), selector: '0x12345678' };
      assert.equal(await refusal(verifier, await fresh(), to), NO_REASON);
    });

    it('and leaves nothing behind: the same answer can be delivered later', async () => {
      const answer = await fresh();
      const to = await target(failing, 'withString');
      const send = verifier.getFunction('verifyAndFulfill').send(...argumentsOf(answer, to), { gasLimit: 500_000 });
      const { hash } = await send;
      assert.equal((await chain.provider.waitForTransaction(hash).catch(() => undefined))?.status, 0);
      assert.deepEqual((await chain.provider.getTransactionReceipt(hash))?.logs, []);
      const made = () =>
        verifier.getFunction('isFulfilled').staticCall(digestOf(answer), answer.node, to.callback, to.selector);
      assert.equal(await made(), false);
      await (await failing.getFunction('mend').send()).wait();
      await deliver(verifier, answer, to);
      assert.equal(await made(), true);
    });
  });

  it('long return data of a callback is not copied', async () => {
    const to = await target(recorder, 'returnMuch');
    const gas = await verifier.getFunction('verifyAndFulfill').estimateGas(...argumentsOf(await fresh(), to));
    // The callback's mebibyte of memory costs it 2.2 million; a copy in the verifier would cost as much again.
    assert.ok(gas > 2_200_000n && gas < 2_500_000n, `${gas}`);
  });

  describe('a callback that delivers again', () => {
    const deliverTo = async (name: string) => deliver(verifier, again, await target(reentrant, name));

    it('what is being delivered is refused', async () => {
      assert.equal(await refusal(verifier, again, await target(reentrant, 'again')), ALREADY);
    });

    it('and catches the refusal has been called once', async () => {
      const logs = await deliverTo('againCaught');
      assert.deepEqual([logs.map(({ name }) => name), logs[1]?.args.reason], [['Fulfilled', 'Caught'], ALREADY]);
    });

    it('to another function of its own makes two deliveries', async () => {
      const logs = await deliverTo('elsewhere');
      const names = logs.map(({ name }) => name);
      const { selector } = await target(reentrant, 'enter');
      assert.deepEqual([names, logs[1]?.args.selector], [['Fulfilled', 'Fulfilled', 'Entered'], selector]);
    });
  });
});

describe('the example consumer', async () => {
  const endpointId = keccak256(toUtf8Bytes('an endpoint'));
  const data = `0x${word(PRICE)}`;
  let consumer: BaseContract;
  let to: Target;
  let now: number;

  const chain = await chainFor(suite);
  const deliverer = await chain.provider.getSigner(1);
  const verifier = await deploy('SignedDataVerifier', deliverer);

  /** Mines a block of a time that no block had. */
  const atTime = async (time: number) => {
    await chain.provider.send('evm_setNextBlockTimestamp', [time]);
    await chain.provider.send('evm_mine', []);
  };

  beforeEach(async () => {
    consumer = await deploy('PriceConsumer', deliverer, verifier, TEST_ADDRESS, endpointId);
    to = await target(consumer, 'onPrice');
    now = ((await chain.provider.getBlock('latest'))?.timestamp ?? 0) + 1000;
    await atTime(now);
  });

  /** An answer of the consumer's signer and endpoint, of just now. */
  const answerOf = (more: Partial<Signed> = {}) => signedBy(TEST_KEY, { endpointId, timestamp: now, data, ...more });
  const accepted = (answer: Answer) => verifier.getFunction('verifyAndFulfill').staticCall(...argumentsOf(answer, to));

  const refused = async (answer: Answer, name: string, args: unknown[]) =>
    assert.equal(await refusal(verifier, answer, to), errorOf('PriceConsumer', name, args));

  it('knows its verifier, its signer, its endpoint, and no price at first', async () => {
    const read = (name: string) => consumer.getFunction(name).staticCall();
    const all = await Promise.all(['VERIFIER', 'NODE', 'ENDPOINT_ID', 'price', 'updatedAt'].map(read));
    assert.deepEqual(all, [await verifier.getAddress(), TEST_ADDRESS, endpointId, 0n, 0n]);
  });

  it('refuses every caller but the verifier', async () => {
    const call = consumer.getFunction('onPrice').staticCall(`0x${'0'.repeat(64)}`, TEST_ADDRESS, endpointId, now, data);
    assert.equal(await revertOf(call), errorOf('PriceConsumer', 'NotTheVerifier', [deliverer.address]));
  });

  it("refuses another verifier's delivery", async () => {
    const impostor = await deploy('SignedDataVerifier', deliverer);
    const reason = errorOf('PriceConsumer', 'NotTheVerifier', [await impostor.getAddress()]);
    assert.equal(await refusal(impostor, await answerOf(), to), reason);
  });

  it('refuses what another signer has signed, which the verifier delivers', async () => {
    const answer = await signedBy(`0x${'11'.repeat(32)}`, { endpointId, timestamp: now, data });
    await refused(answer, 'UnknownNode', [answer.node]);
  });

  it("refuses its signer's answer of another endpoint", async () => {
    const other = keccak256(toUtf8Bytes('another endpoint'));
    await refused(await answerOf({ endpointId: other }), 'UnknownEndpoint', [other]);
  });

  it('accepts an answer of five minutes ago, and none that is older', async () => {
    const answer = await answerOf({ timestamp: now - 300 });
    await accepted(answer);
    await atTime(now + 1);
    await refused(answer, 'TooOld', [now - 300]);
  });

  it('accepts an answer of a minute ahead, and none that is further ahead, whatever its size', async () => {
    await accepted(await answerOf({ timestamp: now + 60 }));
    for (const timestamp of [now + 61, Number.MAX_SAFE_INTEGER])
      await refused(await answerOf({ timestamp }), 'FromTheFuture', [timestamp]);
  });

  it('accepts no answer that is not newer than the one it has', async () => {
    await deliver(verifier, await answerOf({ timestamp: now - 10 }), to);
    const zero = `0x${word(0)}`;
    for (const timestamp of [now - 11, now - 10])
      await refused(await answerOf({ timestamp, data: zero }), 'NotNewer', [timestamp]);
    await deliver(verifier, await answerOf({ timestamp: now - 9, data: zero }), to);
    assert.equal(await consumer.getFunction('price').staticCall(), 0n);
  });

  it('refuses data that is no int256', async () => {
    assert.equal(await refusal(verifier, await answerOf({ data: '0x1234' }), to), NO_REASON);
  });
});

/** The ECDSA signature of a personal message with the nonce k = 2, whose point has the coordinate `r`. */
function signWithNonceTwo(key: string, digest: string, r: bigint): string {
  const prefixed = solidityPackedKeccak256(['string', 'bytes32'], ['\x19Ethereum Signed Message:\n32', digest]);
  const half = (CURVE_ORDER + 1n) / 2n;
  const s = (half * (BigInt(prefixed) + r * BigInt(key))) % CURVE_ORDER;
  const isHigh = s > CURVE_ORDER / 2n;
  const low = isHigh ? CURVE_ORDER - s : s;
  return `0x${word(r)}${word(low)}${isHigh ? '1c' : '1b'}`;
}
