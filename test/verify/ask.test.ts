/** `ask` and `askMany` of the consumers' package, asked of operators over HTTP whose answers ethers signed. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { beforeEach, describe, it } from 'node:test';
import { AbiCoder, Interface } from 'ethers';
import fc from 'fast-check';
import {
  AskError,
  type AskManyOptions,
  type AskOptions,
  ask,
  askMany,
  calldataFor,
  type ManyAnswers,
  QuorumError,
  requestHashOf,
} from '../../verify/index.ts';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import { answerOf, dataOf, deploy, ENDPOINT, SignedDataQuorum, settingsOf, signer } from '../support/quorum.ts';
import { answerBy } from '../support/receipts.ts';
import { type Handler, startUpstream, upstreamFor } from '../support/upstream.ts';

const INT_MIN = -(2n ** 255n);
const INT_MAX = 2n ** 255n - 1n;
const OTHER = `0x${'0e'.repeat(32)}`;
const PATH = `/endpoints/${ENDPOINT}`;
const PARAMETERS = { symbol: 'ETH' };
const NO_BASE = 'url must be the base of a service, with http or https and without a password';

const clock = () => Math.floor(Date.now() / 1000);

/** Several operators on one server, each below a path of its own. */
const server = await upstreamFor(suite);

beforeEach(() => {
  server.requests.length = 0;
});

interface Speech {
  readonly by?: number;
  readonly at?: number;
  readonly endpointId?: string;
}

/** Answers with what the signer of that number says; a signature of its own for each time. */
const saying =
  (said: bigint | string, { by = 0, at = clock(), endpointId = ENDPOINT }: Speech = {}): Handler =>
  async (_req, res) => {
    const content = { data: typeof said === 'string' ? said : dataOf(said) };
    const answer = await answerBy(signer(by), { endpointId, timestamp: at, content, parameters: PARAMETERS });
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(answer));
  };

const silent: Handler = () => undefined;

/** Writes for as long as somebody listens. */
const endless =
  (chunk: string, pause: number): Handler =>
  (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' });
    const write = () => {
      if (res.destroyed) return;
      res.write(chunk);
      setTimeout(write, pause);
    };
    write();
  };

/** An operator with that answer. */
function operator(name: string, answer: Handler, by = 0) {
  server.on(`/${name}${PATH}`, answer);
  return { url: `${server.url}/${name}`, signer: signer(by).address };
}

/** A port at which nothing listens. */
async function deadOperator(by = 0) {
  const gone = await startUpstream();
  await gone.close();
  return { url: gone.url, signer: signer(by).address };
}

const asking = <T extends string = 'int256'>(to: { url: string; signer: string }, more: Partial<AskOptions<T>> = {}) =>
  ask({ ...to, endpointId: ENDPOINT, parameters: PARAMETERS, ...more });

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail('it was accepted'),
    (reason: unknown) => reason,
  );

const refusal = async (promise: Promise<unknown>): Promise<[string, string]> => {
  const error = await rejection(promise);
  if (!(error instanceof AskError)) throw error;
  return [error.reason, error.message];
};

describe('ask', () => {
  it('asks once, as any client, and returns the checked answer with its value', async () => {
    const to = operator('good', saying(INT_MIN));
    const { signal } = new AbortController();
    const answer = await asking({ ...to, url: `${to.url}/` }, { key: 'k-1', receipt: true, signal });
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    assert.deepEqual(
      server.requests.map(({ method, path, headers, body }) => [method, path, headers['x-api-key'], body]),
      [['POST', `/good${PATH}`, 'k-1', '{"parameters":{"symbol":"ETH"}}']],
    );
    const expected = await answerBy(signer(0), {
      ...{ endpointId: ENDPOINT, timestamp: answer.timestamp },
      ...{ content: { data: dataOf(INT_MIN) }, parameters: PARAMETERS },
    });
    assert.deepEqual(answer, {
      ...{ url: `${to.url}/`, value: INT_MIN, signer: signer(0).address, endpointId: ENDPOINT },
      ...{ timestamp: expected.timestamp, data: expected.data, signature: expected.signature },
      receiptSignature: expected.receipt.signature,
    });
  });

  it('decodes any elementary types, and parses raw JSON', async () => {
    const types = ['uint8', 'bool', 'string', 'bytes2'];
    const data = AbiCoder.defaultAbiCoder().encode(types, [255, true, 'ä"', '0xbeef']);
    const several: readonly (bigint | boolean | string)[] = (
      await asking(operator('several', saying(data)), { type: types.join() })
    ).value as never;
    assert.deepEqual(several, [255n, true, 'ä"', '0xbeef']);
    const rawData = { b: [1.5, null], a: 'x' };
    const raw = await answerBy(signer(0), {
      ...{ endpointId: ENDPOINT, timestamp: clock(), content: { rawData }, parameters: PARAMETERS },
    });
    server.json(`/raw${PATH}`, raw);
    const to = { url: `${server.url}/raw`, signer: signer(0).address };
    assert.deepEqual((await asking(to, { type: 'json' })).value, rawData);
    assert.deepEqual(await refusal(asking(to)), ['value', 'the answer is rawData: give json as type']);
  });

  it('refuses what a hostile operator says, each with its reason, and asks nobody else', async () => {
    const good = operator('good', saying(1n));
    const to = `${good.url}${PATH}`;
    const redirect: Handler = (_req, res) => void res.writeHead(307, { Location: to }).end();
    const tampered: Handler = async (_req, res) => {
      const answer = await answerOf(0, clock(), 1n);
      res.end(JSON.stringify({ ...answer, data: dataOf(2n) }));
    };
    const now = clock();
    const cases: [Handler, string, RegExp][] = [
      [silent, 'timeout', /^no whole answer came within 400 ms$/],
      [endless(' ', 5), 'timeout', /^no whole answer came within 400 ms$/],
      [endless('x'.repeat(1024 * 1024), 0), 'too-large', /^the response has more than 4194304 bytes$/],
      [redirect, 'redirect', /^the operator redirects elsewhere: give as url the address where it answers$/],
      [(req) => void req.socket.destroy(), 'unreachable', /^the operator cannot be reached: /],
      [(_req, res) => void res.end('<html>'), 'malformed', /^the response is no JSON$/],
      [
        (_req, res) => void res.writeHead(429).end('{"error":"Rate limit exceeded"}'),
        'status',
        /^the operator answered 429: Rate limit exceeded$/,
      ],
      [tampered, 'signer', /^the signature is not by the node 0x/],
      [saying(1n, { by: 1 }), 'node', new RegExp(`^the response is signed by ${signer(1).address}, not by `)],
      [saying(1n, { endpointId: OTHER }), 'endpoint', /^the response is of endpoint 0x0e/],
      [saying(1n, { at: now - 1000 }), 'too-old', /^the response is 10\d\d seconds old, more than 180$/],
      [saying(1n, { at: now + 1000 }), 'future', /^the response is of 9\d\d seconds in the future$/],
      [saying(`0x${'00'.repeat(64)}`), 'value', /^the data is no ABI encoding of int256$/],
    ];
    for (const [handler, reason, message] of cases) {
      const timeout = reason === 'timeout' ? 400 : 60_000;
      const [was, said] = await refusal(asking(operator('hostile', handler), { timeout }));
      assert.equal(was, reason);
      assert.match(said, message);
    }
    await server.untilIdle();
    assert.deepEqual(new Set(server.requests.map(({ path }) => path)), new Set([`/hostile${PATH}`]));
    const [dead, message] = await refusal(asking(await deadOperator()));
    assert.deepEqual([dead, message.slice(0, 31)], ['unreachable', 'the operator cannot be reached:']);
  });

  it('ends when its caller says so, whatever fetch does', async () => {
    const controller = new AbortController();
    const deaf: typeof fetch = () => {
      controller.abort(new Error('enough'));
      return new Promise(() => undefined);
    };
    const to = { url: server.url, signer: signer(0).address };
    await assert.rejects(asking(to, { fetch: deaf, signal: controller.signal }), { message: 'enough' });
    await assert.rejects(asking(to, { signal: AbortSignal.abort('gone') }), (reason) => reason === 'gone');
    assert.equal(server.requests.length, 0);
  });

  it('says what is wrong with its options, and asks nobody', async () => {
    const right = { url: server.url, signer: signer(0).address };
    const cases: [Partial<AskOptions>, string][] = [
      [{ url: 'ftp://x' }, NO_BASE],
      [{ url: 'https://a:b@x' }, NO_BASE],
      [{ endpointId: '0x12' }, 'endpointId must be 0x and 64 hex digits'],
      [{ signer: `${right.signer.slice(0, -1)}a` }, 'signer must be an address (with the right checksum, if any)'],
      [{ type: 'int' as 'int256' }, 'type must be elementary ABI types, such as int256 or uint8,string, or json'],
      [{ timeout: 0 }, 'timeout must be a number of milliseconds, above 0'],
      [{ receipt: 'true' as unknown as boolean }, 'receipt must be true or false'],
      [{ parameters: { amount: 1n } }, 'parameters must hold JSON values'],
      [{ maxAge: -1 }, 'maxAge must be a number of seconds, 0 or more'],
      [
        { maxage: 1 } as object,
        'maxage is none; there are url, endpointId, parameters, signer, key, receipt, type, maxAge, timeout, signal, fetch',
      ],
    ];
    for (const [more, message] of cases)
      assert.deepEqual(await refusal(asking(right, more)), ['options', `wrong options: ${message}`]);
    assert.equal(server.requests.length, 0);
  });
});

describe('askMany', () => {
  const many = (operators: AskManyOptions['operators'], k: number, more: Partial<AskManyOptions> = {}) =>
    askMany({ operators, k, endpointId: ENDPOINT, parameters: PARAMETERS, timeout: 300_000, ...more });
  const shown = ({ value, answers, failures }: ManyAnswers) => ({
    value,
    counted: answers.map((answer) => answer.signer),
    failed: failures.map(({ url, reason }) => [url.split('/').at(-1), reason]),
  });
  const addresses = (...numbers: number[]) => numbers.map((number) => signer(number).address);

  it('takes the median of those that are good, and names those that are slow, lie, are dead, stale, or are there twice', async () => {
    /** Answers once no more than so many of the six wait for an answer. */
    const after =
      (open: number, answer: Handler): Handler =>
      async (req, res, recorded) => {
        await server.until(() => server.requests.length === 6 && server.open === open);
        await answer(req, res, recorded);
      };
    const operators = [
      operator('slow', silent, 1),
      operator('liar', saying(1_000_000n, { by: 2 }), 2),
      operator('stale', saying(-7n, { by: 3, at: clock() - 181 }), 3),
      operator('first', saying(-7n)),
      operator('again', after(3, saying(-7n))),
      operator('third', after(2, saying(-8n, { by: 4 })), 4),
      await deadOperator(5),
    ];
    const found = await many(operators, 2, { settle: 'all', maxDeviation: 0.2 });
    assert.deepEqual(
      found.failures.map(({ url, reason }) => [operators.findIndex((each) => each.url === url), reason]),
      [
        [0, 'late'],
        [1, 'deviation'],
        [2, 'too-old'],
        [4, 'twice'],
        [6, 'unreachable'],
      ],
    );
    assert.deepEqual([found.value, found.answers.map(({ value }) => value)], [-7n, [-7n, -8n]]);
  });

  it('stops at k where the fastest are enough, and waits for all where all are wanted', async () => {
    const last: Handler = async (req, res, recorded) => {
      await server.until(() => server.open === 1);
      await saying(9n, { by: 2 })(req, res, recorded);
    };
    const pair = [operator('a', saying(1n)), operator('b', saying(2n, { by: 1 }), 1)];
    const fastest = await many([operator('silent', silent, 2), ...pair], 2);
    assert.deepEqual(shown(fastest), { value: 1n, counted: addresses(0, 1), failed: [] });
    await server.untilAborted(`/silent${PATH}`);
    const all = await many([operator('last', last, 2), ...pair], 2, { settle: 'all' });
    assert.deepEqual(shown(all), { value: 2n, counted: addresses(2, 0, 1), failed: [] });
  });

  it('waits for more where those that came do not agree, and rejects where too few ever do', async () => {
    const liar = operator('liar', saying(500n));
    const late: Handler = async (req, res, recorded) => {
      await server.until(() => server.open === 1);
      await saying(100n, { by: 2 })(req, res, recorded);
    };
    const others = [operator('b', saying(101n, { by: 1 }), 1), operator('late', late, 2)];
    const found = await many([liar, ...others], 2, { maxDeviation: 0.01 });
    assert.deepEqual(shown(found), { value: 100n, counted: addresses(1, 2), failed: [['liar', 'deviation']] });
    const rejected = await rejection(many([liar, ...others.slice(0, 1)], 2, { maxDeviation: 0.01 }));
    assert.ok(rejected instanceof QuorumError);
    assert.equal(
      rejected.message,
      `0 of 2 answers that are needed are good; failed: ${server.url}/liar (deviation), ${server.url}/b (deviation)`,
    );
    assert.deepEqual(rejected.failures[0], {
      ...liar,
      reason: 'deviation',
      message: '500 is further than 0.01 of it from the median, 300',
    });
  });

  it('never reaches k with one operator at two addresses, nor by two keys of which one lies', async () => {
    const one = operator('one', saying(1n));
    const same = operator('same', saying(1n));
    const posing = operator('posing', saying(1n), 1);
    const rejected = await rejection(many([one, same, posing], 2));
    assert.ok(rejected instanceof QuorumError);
    assert.equal(rejected.answers.length, 1);
    assert.deepEqual(rejected.failures.map(({ reason }) => reason).toSorted(), ['node', 'twice']);
    const lower = { ...same, signer: same.signer.toLowerCase() };
    assert.deepEqual(await refusal(many([one, same, lower], 2)), [
      'options',
      'wrong options: k is 2, and operators have 1 different signers: add some',
    ]);
  });

  it('ends when its caller says so, and says what is wrong with its options', async () => {
    const operators = [operator('silent', silent)];
    const controller = new AbortController();
    const asked = many(operators, 1, { signal: controller.signal });
    await server.untilRequested(`/silent${PATH}`);
    controller.abort('enough');
    await assert.rejects(asked, (reason) => reason === 'enough');
    await assert.rejects(many(operators, 1, { signal: AbortSignal.abort('gone') }), (reason) => reason === 'gone');
    const cases: [Partial<AskManyOptions>, string][] = [
      [{ k: 0 }, 'k must be a whole number, 1 or more'],
      [{ settle: 'some' as 'all' }, "settle must be 'fastest' or 'all'"],
      [{ maxDeviation: 2 }, 'maxDeviation must be a fraction from 0 to 1'],
      [{ operators: [{ url: 'x', signer: signer(0).address }] }, NO_BASE],
    ];
    for (const [more, message] of cases)
      assert.deepEqual(await refusal(many(operators, 1, more)), ['options', `wrong options: ${message}`]);
  });
});

describe('calldataFor', () => {
  const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;

  it('is what ethers makes of the same answers', async () => {
    const contract = new Interface(SignedDataQuorum?.abi ?? []);
    const anAnswer = fc.record({
      signer: fc.nat(7).map((n) => signer(n).address),
      endpointId: fc.uint8Array({ minLength: 32, maxLength: 32 }).map(hex),
      timestamp: fc.maxSafeNat(),
      data: fc.uint8Array({ maxLength: 70 }).map(hex),
      signature: fc.uint8Array({ minLength: 65, maxLength: 65 }).map(hex),
      receiptSignature: fc.option(fc.uint8Array({ maxLength: 65 }).map(hex), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(anAnswer, { maxLength: 5 }), (answers) => {
        const structs = answers.map(({ signer: node, receiptSignature = '0x', ...rest }) => ({
          node,
          receiptSignature,
          ...rest,
        }));
        assert.equal(calldataFor(answers), contract.encodeFunctionData('median', [structs]));
      }),
    );
  });

  it('has the contract say the same median as askMany, of negative values and the least of all, with receipts', async (t) => {
    const chain = await chainFor(t);
    const deployer = await chain.provider.getSigner(0);
    const requestHash = requestHashOf(PARAMETERS);
    const contract = await deploy(SignedDataQuorum, deployer, settingsOf({ requestHash, threshold: 2 }), 0);
    const to = await contract.getAddress();
    for (const values of [
      [-3n, -4n],
      [INT_MIN, INT_MIN],
      [INT_MIN, INT_MAX],
      [INT_MIN, -1n, 5n],
      [-10n, 3n, 4n, -9n],
    ]) {
      const operators = values.map((value, by) => operator(`o${by}`, saying(value, { by }), by));
      const { value, answers } = await askMany({
        ...{ operators, k: values.length, endpointId: ENDPOINT, parameters: PARAMETERS },
        ...{ receipt: true, timeout: 60_000 },
      });
      const returned = await chain.provider.call({ to, data: calldataFor(answers) });
      const oldest = Math.min(...answers.map(({ timestamp }) => timestamp));
      assert.deepEqual([...contract.interface.decodeFunctionResult('median', returned)], [value, BigInt(oldest)]);
    }
  });
});
