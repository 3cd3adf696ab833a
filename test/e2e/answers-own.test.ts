/** An answer that a plugin gives or works around is checked against what was asked, and means the same as one of the upstream. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { answerStatement, receiptBeside } from '../../lib/eth/statements.ts';
import {
  AskedQuestion,
  type Exchange,
  isRefusal,
  type OutgoingRequest,
  type Parameters,
  type Question,
  SignedResponse,
} from '../../plugins-sdk/index.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import type { Signer } from '../../plugins-sdk/signing/signers.ts';
import type { AroundCall } from '../../plugins-sdk/stage-functions.ts';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { acts, puppetFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

/** A plugin whose functions of these stages do what a test says, and else have nothing to say. */
const OWN = `export default {
  name: 'own',
  setup: () => ({
    hooks: {
      validate: (parameters, exchange) => testAct('own validate', { parameters, exchange }),
      answer: (question, exchange, call) => testAct('own answer', { question, exchange, call }),
      callApi: (request, exchange, call) => testAct('own callApi', { request, exchange, call }),
      encode: (response) => testAct('own encode', { response }),
    },
  }),
};
`;

interface Asked<V, R> {
  readonly question: Question;
  readonly request: OutgoingRequest;
  readonly parameters: Parameters;
  readonly exchange: Exchange;
  readonly call: AroundCall<V, R>;
}
type AnswerCall = Asked<Question, SignedResponse>;
type ApiCall = Asked<OutgoingRequest, { readonly status: number; readonly data: never }>;

const act = <A>(stage: string, fn: (asked: A) => unknown) => acts.set(`own ${stage}`, (asked) => fn(asked as A));

type Asking = [name: string, parameters?: object, headers?: Record<string, string>];

let arrived = 0;
const held: ((status: number) => void)[] = [];

const cache = { maxAge: 60_000 };
const parameters = [{ name: 'q' }];
const endpoints = {
  held: { cache, parameters },
  tenant: { cache, parameters: [{ name: 'tenant' }], receipt: true },
  other: { path: '/tenant?other', parameters },
  encoded: { path: '/number', parameters, encoding: { type: 'uint256', path: '$' } },
  plain: { path: '/tenant?plain', parameters, cache },
  exact: { encoding: { type: 'int256', path: '$.v', exact: true } },
  long: { path: '/long', encoding: { type: 'uint256', path: '$.length' } },
};
const { upstream, service, encoded, raw, refused } = await served(suite, endpoints, {
  answers: {
    '/number': faults.json(7),
    '/held': (_, response) =>
      void held.push((status) => response.writeHead(status, { 'Content-Type': 'application/json' }).end('{"v":1}')),
    '/tenant': (_, response, { path }) =>
      void response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ of: path })),
  },
  sources: { own: OWN, arrivals: puppetFile('arrivals', ['onHttpRequest']) },
  entries: { own: { timeout: 30_000 } },
});

beforeEach(() => {
  acts.clear();
  held.length = 0;
  upstream.requests.length = 0;
  arrived = 0;
  acts.set('arrivals onHttpRequest', () => {
    arrived += 1;
  });
});

/** Asserts that a request fails in the plugin, and that the log says why. */
async function assertFault(why: string, ...asked: Asking): Promise<void> {
  const start = service.logs.length;
  await fails(...asked);
  const reasons = service.logs.slice(start).map(({ fields }) => String(fields.detail ?? fields.error ?? ''));
  const fault = reasons.find((text) => text.includes('plugin "own"')) ?? '';
  assert.ok(fault.includes(why), fault);
}

const fails = (...asked: Asking) => refused(500, 'Internal server error', ...asked);

describe('40 clients of an upstream that fails make one call', () => {
  const own: Readonly<Record<string, () => unknown>> = {
    'of the built-ins': () => undefined,
    'with an own encode': () => act('encode', () => ({ bytes: '0x01', field: 'data', value: '0x01' })),
    'with an own callApi round the built-in one': () => act<ApiCall>('callApi', ({ call }) => call.next()),
    'with an own callApi in its place': () =>
      act<ApiCall>('callApi', async ({ request: { url, headers } }) => {
        const response = await fetch(url, { headers });
        if (!response.ok) throw new Error(`status ${response.status}`);
        return { status: 200, data: await response.json() };
      }),
    'with an own answer round the built-in one': () => act<AnswerCall>('answer', ({ call }) => call.next()),
  };
  for (const [name, begin] of Object.entries(own)) {
    it(name, async () => {
      begin();
      const answers = Array.from({ length: 40 }, () => service.post('api/held', { q: name }));
      await eventually(() => arrived === 40 && held.length > 0, 'all of them');
      held[0]?.(503);
      const statuses = await Promise.all(answers.map(async (answer) => (await answer).status));
      assert.deepEqual([...new Set(statuses)], name.endsWith('in its place') ? [500] : [502]);
      assert.equal(upstream.requests.length, 1);
    });
  }
});

it('what a plugin makes of the parameters is asked, kept and vouched for: nobody gets the answer to another', async () => {
  act<AnswerCall>('validate', ({ parameters, exchange }) => ({ ...parameters, tenant: exchange.headers['x-tenant'] }));
  const ask = async (tenant: string) => {
    const response = await service.post('api/tenant', { tenant: 'forged' }, { 'X-Tenant': tenant });
    const status = response.headers.get('cache-status');
    return { answer: await verifyRaw(response, service.signer.address), status };
  };
  const [alice, bob, again] = [await ask('alice'), await ask('bob'), await ask('alice')];
  assert.deepEqual(alice.answer.rawData, { of: '/tenant?tenant=alice' });
  assert.deepEqual(bob.answer.rawData, { of: '/tenant?tenant=bob' });
  assert.deepEqual(again.answer, alice.answer);
  assert.match(again.status ?? '', /hit/);
  assert.equal(upstream.requests.length, 2);
  for (const [tenant, { answer }] of [['alice', alice] as const, ['bob', bob] as const]) {
    const { address: node } = service.signer;
    assert.equal(verifyResponse(answer, { node, parameters: { tenant } }).ok, true);
    assert.equal(verifyResponse(answer, { node, parameters: { tenant: 'forged' } }).ok, false);
  }
});

describe('an answer that a plugin brings along', () => {
  const signer = createSigner(TEST_KEY);
  const hashIn = (question: Question) => (AskedQuestion.is(question) ? question.requestHash : undefined);
  const sign = (name: string, { by = signer, ahead = 0, requestHash }: Forged = {}) => {
    const endpointId = service.ids[name] as `0x${string}`;
    const timestamp = Math.floor(Date.now() / 1000) + ahead;
    const data = '0x07';
    const shown = { endpointId, timestamp, data } as const;
    const stated = requestHash && receiptBeside(shown, requestHash);
    const extra = stated && { receipt: { ...stated.shown, signature: by.sign(stated.typed) } };
    const parts = { node: by.address, endpointId, timestamp, field: 'data', value: data, proof: undefined };
    const signed = {
      signature: by.sign(answerStatement(shown)),
      ...(extra && { extra: JSON.parse(JSON.stringify(extra)) }),
    };
    return SignedResponse.of({ ...parts, ...signed });
  };
  interface Forged {
    readonly by?: Signer;
    readonly ahead?: number;
    readonly requestHash?: `0x${string}` | undefined;
  }
  const HASH = `0x${'44'.repeat(32)}` as const;
  const changed = (name: string, from: string | RegExp, to: string, forged?: Forged) => {
    return { json: sign(name, forged).json.replace(from, to) };
  };

  it('is the one that the client gets, if it is an answer of the service to this question', async () => {
    for (const brought of [sign('api/plain'), { json: sign('api/plain').json }]) {
      act('answer', () => brought);
      const response = await service.post('api/plain', { q: 'brought' });
      assert.equal(await response.text(), brought.json);
    }
    act<AnswerCall>('answer', ({ question }) => sign('api/tenant', { requestHash: hashIn(question) }));
    assert.equal((await service.post('api/tenant')).status, 200);
    assert.equal(upstream.requests.length, 0);
  });

  const forged: Readonly<Record<string, readonly [endpoint: string, make: () => unknown, why: string]>> = {
    'of another endpoint': ['plain', () => sign('api/other'), 'of another endpoint'],
    'of the future': ['plain', () => sign('api/plain', { ahead: 60 }), 'of the future'],
    'of another signer': ['plain', () => sign('api/plain', { by: createSigner('02'.repeat(32)) }), 'no signer'],
    'that was changed': ['plain', () => changed('api/plain', '0x07', '0x08'), 'cannot be verified'],
    'without the receipt that the endpoint has': ['tenant', () => sign('api/tenant'), 'without a receipt'],
    'to another request': ['tenant', () => sign('api/tenant', { requestHash: HASH }), 'of another request'],
    'whose receipt shows other data': [
      'tenant',
      () => changed('api/tenant', /"dataHash":"\w+"/, `"dataHash":"${HASH}"`, { requestHash: HASH }),
      'the receipt is not of this request and this answer',
    ],
    'with something beside what was signed': [
      'plain',
      () => changed('api/plain', '"data"', '"rawData":{"of":"forged"},"data"'),
      'with both data and rawData',
    ],
    'with what a mode says': [
      'plain',
      () => changed('api/plain', '}', ',"status":"failed"}'),
      'with a member that only modes add: requestId, status, pollUrl, done',
    ],
    'that is none': ['plain', () => ({ json: '{}' }), 'an answer without a node'],
  };
  for (const [name, [endpoint, make, why]] of Object.entries(forged)) {
    it(`is refused ${name}`, async () => {
      act('answer', make);
      await assertFault(why, endpoint, { q: name });
    });
  }

  it('is compared each time with what is asked, though it was looked at before, or made here', async () => {
    const known = sign('api/plain');
    let made: SignedResponse | undefined;
    act<AnswerCall>('answer', async ({ call }) => {
      made = await call.next();
      return made;
    });
    await service.post('api/other');
    act('answer', () => known);
    assert.equal((await service.post('api/plain')).status, 200);
    await fails('other');
    act('answer', () => made);
    assert.equal((await service.post('api/other')).status, 200);
    await fails('plain');
  });

  it('and another question are not handed on', async () => {
    let first: Question | undefined;
    act<AnswerCall>('answer', ({ question, call }) => {
      first ??= question;
      return call.next(first.with({ q: 'changed' }));
    });
    assert.deepEqual(await raw('other', { q: 'one' }), { of: '/tenant?other&q=changed' });
    await fails('other', { q: 'two' });
  });
});

describe('a plugin round the call of the API', () => {
  it('asks again what failed, and knows how', async () => {
    const seen: unknown[] = [];
    act<ApiCall>('callApi', ({ call }) =>
      call.next().catch((error) => {
        assert.ok(isRefusal(error));
        seen.push(error.upstreamStatus, error.reason);
        return call.next();
      }),
    );
    const answer = service.post('api/held', { q: 'again' });
    await eventually(() => held[0], 'a call');
    held[0]?.(503);
    await eventually(() => held[1], 'another call');
    held[1]?.(200);
    assert.deepEqual((await verifyRaw(await answer, service.signer.address)).rawData, { v: 1 });
    assert.deepEqual(seen, [503, 'upstream status 503']);
  });

  it('sends what it likes, wherever it likes', async (t) => {
    const elsewhere = await upstreamFor(t, { '/signed': faults.json({ v: 'elsewhere' }) });
    act<ApiCall>('callApi', ({ request, call }) =>
      call.next({
        ...request,
        method: 'POST',
        url: `${elsewhere.url}/signed?a=1`,
        headers: { ...request.headers, Authorization: 'Bearer t' },
        body: 'text',
      }),
    );
    assert.deepEqual(await raw('other', { q: 'elsewhere' }), { v: 'elsewhere' });
    const { method, path, body, headers } = elsewhere.requests[0] ?? assert.fail('no request');
    assert.deepEqual([method, path, body, headers.authorization], ['POST', '/signed?a=1', 'text', 'Bearer t']);
    assert.equal(upstream.requests.length, 0);
  });

  it('changes what it gets, whose text is that of the data no more', async () => {
    act<ApiCall>('callApi', async ({ call }) => ({ ...(await call.next()), data: 12 }));
    assert.equal(BigInt((await encoded('encoded', { q: 'changed' })).data), 12n);
  });

  it('copies an answer of any length by a spread', async () => {
    act<ApiCall>('callApi', async ({ call }) => ({ ...(await call.next()), status: 203 }));
    for (const length of [1, 3000, 70_000]) {
      upstream.json('/long', { length, text: 'x'.repeat(length) });
      assert.equal(BigInt((await encoded('long')).data), BigInt(length));
    }
  });

  it('hands on nothing that cannot be sent', async () => {
    const wrong: readonly (readonly [object, string])[] = [
      [{ method: 'GET /' }, 'method must be an HTTP method such as GET'],
      ...['/relative', 'ftp://h/', 'http://a:b@h/', 'http://:b@h/', 'http://h/#f'].map(
        (url) => [{ url }, 'url must be an absolute http or https URL without credentials and fragment'] as const,
      ),
      [{ headers: [] }, 'headers must be an object of texts'],
      [{ headers: { 'a b': 'x' } }, 'headers["a b"] is no header that can be set'],
      [{ headers: { Connection: 'close' } }, 'headers["Connection"] is no header that can be set'],
      [{ headers: { a: 'x\ny' } }, 'headers["a"] must be a text that a header can carry'],
      [{ headers: { a: 'x', A: 'y' } }, 'headers["A"] is there twice: case does not count'],
      [{ body: {} }, 'body must be a text, or absent'],
    ];
    for (const [member, why] of wrong) {
      act<ApiCall>('callApi', ({ request, call }) => call.next({ ...request, ...member }));
      await assertFault(why, 'other');
    }
    assert.equal(upstream.requests.length, 0);
  });
});

it('an answer of a plugin in place of the upstream is what its data says, and the text counts only as that of the data', async () => {
  const long = ' '.repeat(70_000);
  const digits = 12345678901234567890123n;
  const rows: readonly (readonly [data: object, text: string, signed: bigint])[] = [
    ...['{"v":2}', '{"v":"1"}', '{}', '[1]', '', 'no JSON', `{"v":2}${long}`, long].map(
      (text) => [{ v: 1 }, text, 1n] as const,
    ),
    [{ v: 1 }, '{"v":1.0}', 1n],
    ...['', long].map((blank) => [{ v: Number(digits) }, `{"v":${digits}}${blank}`, digits] as const),
  ];
  for (const [data, text, signed] of rows) {
    act('callApi', () => ({ status: 200, data, text }));
    assert.equal(BigInt((await encoded('exact')).data), signed, text.slice(0, 20));
  }
});

it('members that are added to an answer leave it JSON', () => {
  const text = '{"node":"0x01","endpointId":"0x01","timestamp":1,"data":"0x","signature":"0x01"}';
  const answer = SignedResponse.parse(text);
  assert.equal(answer.with({}).json, text);
  assert.equal(answer.with({ note: undefined }).json, text);
  assert.equal(answer.with({ done: true }).json, `{"done":true,${text.slice(1)}`);
});
