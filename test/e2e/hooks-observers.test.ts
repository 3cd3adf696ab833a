/** Observers are told of each answer and each failure, once, and change nothing. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { finished, submitted } from '../support/async.ts';
import { assertRefused, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, hostileThrows, notes, puppetFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { tidy } from '../support/tidy.ts';
import { faults } from '../support/upstream.ts';
import { eventOf, eventually } from '../support/wait.ts';

const X402 = {
  type: 'x402',
  network: 1,
  rpc: 'http://127.0.0.1:1',
  token: '0x0000000000000000000000000000000000000000',
  amount: '1',
  recipient: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
};

const TOKEN = { network: 'eip155:1', asset: `0x${'11'.repeat(20)}`, amount: '1', payTo: X402.recipient };
const EXACT = {
  type: 'x402-exact',
  facilitator: 'http://127.0.0.1:1',
  accepts: [{ ...TOKEN, extra: { name: 'T', version: '1' } }],
};

const LIMITED = { name: 'limited', key: 'limited', rateLimit: { window: 3_600_000, max: 1 } };

const encoding = { type: 'uint256', path: '$.price' };
const keyed = { type: 'apiKey', keys: ['k'] };
const endpoints = {
  sync: { encoding },
  raw: {},
  cached: { encoding, cache: { maxAge: 600_000 } },
  async: { encoding, mode: 'async' },
  stream: { encoding, mode: 'stream' },
  nothing: { encoding: { ...encoding, path: '$.none' } },
  down: {},
  'down-async': { mode: 'async' },
  'down-stream': { mode: 'stream' },
  needs: { parameters: [{ name: 'q', required: true }] },
  keyed: { auth: keyed },
  limited: { auth: { type: 'apiKey', keys: [LIMITED] } },
  paid: { auth: X402 },
  exact: { auth: EXACT },
  'paid-or-keyed': { auth: [X402, keyed] },
  'keyed-or-paid': { auth: [keyed, X402] },
};
const down = Object.fromEntries(['/down', '/down-async', '/down-stream'].map((path) => [path, faults.serverError()]));
const { upstream, service, post, at, encoded, raw, refused } = await served(suite, endpoints, {
  answers: { '*': faults.json({ price: 7 }), ...down },
  server: { rateLimit: { max: 1_000_000, trustForwardedFor: true } },
  sources: {
    first: puppetFile('first'),
    second: puppetFile('second'),
    // No other hook of it can be out of budget before an answer.
    quick: puppetFile('quick', ['onResponseSent']),
  },
  entries: { first: { timeout: 30_000 }, second: { timeout: 30_000 }, quick: { timeout: 50 } },
});

beforeEach(() => tidy(service, upstream));
beforeEach(() => {
  acts.set('first onResponseSent', ({ endpoint, status, requestId }) =>
    notes.add('sent', [endpoint, status, requestId]),
  );
  acts.set('first onError', ({ endpoint, stage, status, error, requestId }) =>
    notes.add('error', [endpoint, stage, status, (error as Error).message, requestId]),
  );
});

const idOf = (response: Response) => response.headers.get('x-request-id');

/** Hooks of a plugin that hang until they are let go. */
function hanging(...names: string[]) {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  for (const name of names)
    acts.set(name, () => {
      notes.add('began');
      return released.then(() => notes.add('ended'));
    });
  return () => release();
}

describe('onResponseSent fires for every signed answer', () => {
  for (const name of ['sync', 'raw', 'stream']) {
    it(name, async () => {
      const response = await post(name);
      await response.text();
      assert.deepEqual(await notes.until('sent'), [[name, 200, idOf(response)]]);
      assert.deepEqual(notes.of('error'), []);
    });
  }

  it('cached ones too, which pass by the mutation hooks but not by onHttpRequest', async () => {
    const seen = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign', 'onResponseSent'];
    for (const hook of seen) acts.set(`first ${hook}`, () => notes.add('hooks', hook));
    const first = await (await post('cached')).text();
    await notes.until('hooks', 5);
    assert.deepEqual(notes.of('hooks'), seen);
    notes.clear();
    assert.equal(await (await post('cached')).text(), first);
    assert.deepEqual(await notes.until('hooks', 2), ['onHttpRequest', 'onResponseSent']);
  });

  it('in async mode when the record completes, not at the 202', async () => {
    const release = hanging('second onAfterApiCall');
    const response = await post('async');
    const submission = await submitted(response);
    await notes.until('began');
    assert.deepEqual(notes.of('sent'), []);
    release();
    await finished(service, submission);
    assert.deepEqual(await notes.until('sent'), [['async', 200, idOf(response)]]);
  });
});

describe('onError fires for every request that a stage refused or failed', () => {
  /** Asserts that observers are told, once, of the error that the client gets. */
  const assertTold = async (response: Response, name: string, stage: string, status: number, error: string) => {
    if (status !== 402) await assertRefused(response, status, error);
    assert.equal(response.status, status);
    assert.deepEqual(await notes.until('error'), [[name, stage, status, error, idOf(response)]]);
    assert.deepEqual(notes.of('sent'), []);
  };

  const told: readonly (readonly [name: string, stage: string, status: number, error: string])[] = [
    ['nothing', 'encode', 502, 'No value found at path: $.none'],
    ['down', 'callApi', 502, 'API call failed'],
    ['down-stream', 'callApi', 502, 'API call failed'],
    ['needs', 'prepare', 400, 'Missing required parameter(s): q'],
    ['keyed', 'authenticate', 401, 'Missing X-Api-Key header'],
    ['paid-or-keyed', 'authenticate', 401, 'Missing X-Api-Key header'],
    ['keyed-or-paid', 'authenticate', 402, 'Payment required'],
    ['paid', 'authenticate', 402, 'Payment required'],
    ['exact', 'authenticate', 402, 'PAYMENT-SIGNATURE header is required'],
  ];
  for (const [name, stage, status, error] of told)
    it(`${name}: ${status} at ${stage}`, async () => assertTold(await post(name), name, stage, status, error));

  it('a header that is no proof of payment', async () => {
    const response = await post('paid', {}, { 'X-Payment-Proof': '{}' });
    await assertTold(response, 'paid', 'authenticate', 402, 'Invalid payment proof');
  });

  const byPlugins: readonly [what: string, hook: string, result: object, status: number, error: string][] = [
    ['a rejection by a plugin', 'onHttpRequest', { reject: true, status: 451, message: 'Not here' }, 451, 'Not here'],
    ['an error status that a plugin set', 'onAfterApiCall', { data: null, status: 404 }, 502, 'API call failed'],
  ];
  for (const [what, hook, result, status, error] of byPlugins)
    it(what, async () => {
      acts.set(`second ${hook}`, () => result);
      await assertTold(await post('sync'), 'sync', hook, status, error);
    });

  it('background ones included', async () => {
    const response = await post('down-async');
    const submission = await submitted(response);
    await finished(service, submission);
    const expected = ['down-async', 'callApi', 502, 'API call failed', idOf(response)];
    assert.deepEqual(await notes.until('error'), [expected]);
    assert.deepEqual(notes.of('sent'), []);
  });

  const unread: readonly [body: string, headers: Record<string, string>, status: number, error: string][] = [
    ['{', {}, 400, 'Request body must be valid JSON'],
    ['[]', {}, 400, 'Request body must be an object'],
    ['{"parameters":null}', {}, 400, 'Request parameters must be an object'],
    ['1'.repeat(65_537), {}, 413, 'Request body too large'],
    ['{}', { 'Content-Type': 'text/plain' }, 415, 'Content-Type must be application/json'],
  ];
  for (const [body, headers, status, error] of unread)
    it(`a body that is refused: ${status} ${error}`, async () => {
      const response = await postText(at('async'), body, { ...JSON_HEADERS, ...headers });
      await assertTold(response, 'async', 'parseBody', status, error);
    });

  it('a client beyond the limit of its key', async () => {
    const headers = { 'X-Api-Key': 'limited' };
    await (await post('limited', {}, headers)).text();
    await notes.until('sent');
    notes.clear();
    const response = await post('limited', {}, headers);
    await assertTold(response, 'limited', 'authenticate', 429, 'Too Many Requests');
  });

  it('not what never reached the pipeline: the rate limit, unknown paths and wrong methods', async (t) => {
    const server = { rateLimit: { max: 1 } };
    const limited = await served(t, { price: {} }, { server, sources: { first: puppetFile('first') } });
    limited.upstream.json('/price', 1);
    await (await limited.post('price')).text();
    await limited.refused(429, 'Too Many Requests', 'price');
    await assertRefused(await fetch(`${limited.service.url}/nowhere`), 404, 'Not Found');
    await assertRefused(await fetch(limited.at('price'), { method: 'PUT' }), 405, 'Method Not Allowed');
    // Whoever is told of them is told by the time that another one is.
    acts.set('first onError', ({ requestId }) => notes.add('error', requestId));
    const last = await post('down');
    assert.deepEqual(await notes.until('error'), [idOf(last)]);
    assert.equal(notes.of('sent').length, 1);
  });
});

describe('observation hooks never delay or change the answer', () => {
  it('one that hangs', async () => {
    const release = hanging('first onResponseSent', 'first onError');
    await encoded('sync');
    await refused(502, 'API call failed', 'down');
    await notes.until('began', 2);
    await encoded('sync');
    assert.deepEqual(notes.of('ended'), []);
    release();
    await notes.until('ended', 3);
  });

  it('one that blocks the process: the response is out before it begins', async () => {
    for (const [name, hook] of Object.entries({ sync: 'onResponseSent', stream: 'onResponseSent', down: 'onError' })) {
      notes.clear();
      const flag = new Int32Array(new SharedArrayBuffer(4));
      acts.set(`first ${hook}`, () => notes.add('waited', Atomics.wait(flag, 0, 0, 10_000)));
      const worker = new Worker(
        `const { workerData, parentPort } = require('node:worker_threads');
         fetch(workerData.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })
           .then(async (response) => {
             const answer = [response.status, await response.text()];
             Atomics.store(workerData.flag, 0, 1);
             Atomics.notify(workerData.flag, 0);
             parentPort.postMessage(answer);
           });`,
        { eval: true, execArgv: [], workerData: { flag, url: at(name) } },
      );
      const [[status]] = await eventOf(worker, 'message');
      assert.equal(status, name === 'down' ? 502 : 200);
      const [waited] = await notes.until('waited');
      assert.ok(waited === 'ok' || waited === 'not-equal', `the observer waited for the response: ${waited}`);
      await worker.terminate();
    }
  });

  it('one that returns something, or writes to what it gets', async () => {
    acts.set('first onResponseSent', (context) => {
      notes.add('attempt');
      assert.throws(() => Object.assign(context, { status: 500 }), TypeError);
      return { status: 500, data: '0x', reject: true };
    });
    acts.set('first onError', (context) => {
      notes.add('attempt');
      Object.assign(context.error as Error, { message: 'other' });
      return { status: 200, reject: false };
    });
    await raw('raw');
    await notes.until('attempt');
    acts.set('second onError', ({ error }) => notes.add('message', (error as Error).message));
    await refused(502, 'API call failed', 'down');
    assert.deepEqual(await notes.until('message'), ['API call failed'], 'each observer has an error of its own');
  });

  it('one that fails is named in the log; the others see everything', async () => {
    const thrown = Object.entries(hostileThrows).flatMap(([what, make]) => [
      { what, act: () => Promise.reject(make()) },
      {
        what,
        act: () => {
          throw make();
        },
      },
    ]);
    for (const [hook, name] of Object.entries({ onResponseSent: 'sync', onError: 'down' })) {
      for (const { what, act } of thrown) {
        notes.clear();
        service.logs.length = 0;
        acts.set(`first ${hook}`, act);
        acts.set(`second ${hook}`, () => notes.add('second'));
        const response = await post(name);
        const text = await response.text();
        assert.equal(response.status, name === 'down' ? 502 : 200, what);
        assert.ok(!text.includes('LEAK'), text);
        await notes.until('second');
        const line = await eventually(() => service.logs.find(({ level }) => level === 'error'), `${hook}: ${what}`);
        assert.deepEqual([line.message, line.fields.requestId], [`plugin "first" failed in ${hook}`, idOf(response)]);
      }
    }
  });

  it('one out of budget is named in the log too', async () => {
    acts.set('quick onResponseSent', () => new Promise(() => undefined));
    const response = await post('sync');
    await response.text();
    const line = await eventually(() => service.logs.find(({ level }) => level === 'error'), 'the log line');
    assert.equal(line.message, 'plugin "quick" failed in onResponseSent');
    assert.equal(line.fields.error, 'its 50 ms were spent in the call');
  });
});
