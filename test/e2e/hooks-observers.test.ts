/** Observers are told of each answer and each failure, once, and change nothing. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { beforeEach, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { finished, submitted } from '../support/async.ts';
import { assertRefused, eventually, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, hostileThrows, notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const X402 = {
  type: 'x402',
  network: 1,
  rpc: 'http://127.0.0.1:1',
  token: '0x0000000000000000000000000000000000000000',
  amount: '1',
  recipient: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
};

const LIMITED = { name: 'limited', key: 'limited', rateLimit: { window: 3_600_000, max: 1 } };

const upstream = await upstreamFor(suite);
upstream.json('/price', { price: 7 });
upstream.on('/down', faults.serverError());
const names = ['first', 'second', 'quick'];
const { files, plugins } = pluginFiles(Object.fromEntries(names.map((name) => [name, puppetFile(name)])), {
  first: { timeout: 30_000 },
  quick: { timeout: 50 },
});
const encoding = { type: 'uint256', path: '$.price' };
const free = { type: 'free' };
const service = await serviceFor(
  suite,
  {
    server: { rateLimit: { max: 1_000_000, trustForwardedFor: true } },
    settings: { plugins },
    apis: [
      {
        name: 'x',
        url: upstream.url,
        endpoints: [
          { name: 'sync', path: '/price', auth: free, encoding },
          { name: 'raw', path: '/price', auth: free },
          { name: 'cached', path: '/price?c', auth: free, encoding, cache: { maxAge: 600_000 } },
          { name: 'async', path: '/price?a', auth: free, encoding, mode: 'async' },
          { name: 'stream', path: '/price?s', auth: free, encoding, mode: 'stream' },
          { name: 'nothing', path: '/price?n', auth: free, encoding: { ...encoding, path: '$.none' } },
          { name: 'down', path: '/down', auth: free },
          { name: 'down-async', path: '/down?a', auth: free, mode: 'async' },
          { name: 'down-stream', path: '/down?s', auth: free, mode: 'stream' },
          { name: 'needs', path: '/price?q', auth: free, parameters: [{ name: 'q', required: true }] },
          { name: 'keyed', path: '/price?k', auth: { type: 'apiKey', keys: ['k'] } },
          { name: 'limited', path: '/price?l', auth: { type: 'apiKey', keys: [LIMITED] } },
          { name: 'paid', path: '/price?p', auth: X402 },
          { name: 'paid-or-keyed', path: '/price?pk', auth: [X402, { type: 'apiKey', keys: ['k'] }] },
          { name: 'keyed-or-paid', path: '/price?kp', auth: [{ type: 'apiKey', keys: ['k'] }, X402] },
        ],
      },
    ],
  },
  { files },
);

beforeEach(() => tidy(service, upstream));
beforeEach(() => {
  acts.set('first onResponseSent', ({ endpoint, status, requestId }) =>
    notes.add('sent', [endpoint, status, requestId]),
  );
  acts.set('first onError', ({ endpoint, stage, status, error, requestId }) =>
    notes.add('error', [endpoint, stage, status, (error as Error).message, requestId]),
  );
});

/** As `Promise.withResolvers` of later ECMAScript. */
function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const idOf = (response: Response) => response.headers.get('x-request-id');
const post = (name: string, parameters?: unknown, headers?: Record<string, string>) =>
  service.post(`x/${name}`, parameters, headers);

describe('onResponseSent fires for every signed answer', () => {
  for (const [name, what] of [
    ['sync', 'sync'],
    ['raw', 'raw'],
    ['stream', 'stream'],
  ] as const) {
    it(`${what}`, async () => {
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
    const { promise: held, resolve: release } = withResolvers();
    acts.set('second onAfterApiCall', () => {
      notes.add('held');
      return held;
    });
    const response = await post('async');
    const submission = await submitted(response);
    await notes.until('held');
    assert.deepEqual(notes.of('sent'), []);
    release();
    await finished(service, submission);
    assert.deepEqual(await notes.until('sent'), [['async', 200, idOf(response)]]);
  });
});

describe('onError fires for every request that a stage refused or failed', () => {
  const refused: readonly [string, unknown, string, number, string][] = [
    ['nothing', {}, 'encode', 502, 'No value found at path: $.none'],
    ['down', {}, 'callApi', 502, 'API call failed'],
    ['down-stream', {}, 'callApi', 502, 'API call failed'],
    ['needs', {}, 'prepare', 400, 'Missing required parameter(s): q'],
    ['keyed', {}, 'authenticate', 401, 'Missing X-Api-Key header'],
    ['paid-or-keyed', {}, 'authenticate', 401, 'Missing X-Api-Key header'],
  ];
  for (const [name, parameters, stage, status, error] of refused) {
    it(`${name}: ${status} at ${stage}`, async () => {
      const response = await post(name, parameters);
      await assertRefused(response, status, error);
      assert.deepEqual(await notes.until('error'), [[name, stage, status, error, idOf(response)]]);
      assert.deepEqual(notes.of('sent'), []);
    });
  }

  it('a rejection by a plugin', async () => {
    acts.set('second onHttpRequest', () => ({ reject: true, status: 451, message: 'Not here' }));
    await assertRefused(await post('sync'), 451, 'Not here');
    const [note] = (await notes.until('error')) as [unknown[]];
    assert.deepEqual(note.slice(0, 4), ['sync', 'onHttpRequest', 451, 'Not here']);
  });

  it('an error status that a plugin set', async () => {
    acts.set('second onAfterApiCall', () => ({ data: null, status: 404 }));
    await assertRefused(await post('sync'), 502, 'API call failed');
    const [note] = (await notes.until('error')) as [unknown[]];
    assert.deepEqual(note.slice(0, 4), ['sync', 'onAfterApiCall', 502, 'API call failed']);
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
  for (const [body, headers, status, error] of unread) {
    it(`a body that is refused: ${status} ${error}`, async () => {
      const url = `${service.url}/endpoints/${service.ids['x/async']}`;
      const response = await fetch(url, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body });
      await assertRefused(response, status, error);
      assert.deepEqual(await notes.until('error'), [['async', 'parseBody', status, error, idOf(response)]]);
    });
  }

  it('but not a client that left while it sent its body', async () => {
    const { hostname, port } = new URL(service.url);
    const head = `POST /endpoints/${service.ids['x/sync']} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
    for (const begun of ['Content-Length: 20\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n1\r\n{']) {
      service.logs.length = 0;
      const socket = connect(Number(port), hostname);
      socket.write(head + begun);
      await new Promise((done) => setTimeout(done, 50));
      socket.destroy();
      await eventually(() => service.logs.find(({ message }) => / 499 /.test(message)), begun);
    }
    await (await post('sync')).text();
    await notes.until('sent');
    assert.deepEqual(notes.of('error'), []);
  });

  it('a client beyond the limit of its key', async () => {
    const headers = { 'X-Api-Key': 'limited' };
    await (await post('limited', {}, headers)).text();
    const response = await post('limited', {}, headers);
    await assertRefused(response, 429, 'Too Many Requests');
    const told = ['limited', 'authenticate', 429, 'Too Many Requests', idOf(response)];
    assert.deepEqual(await notes.until('error'), [told]);
  });

  for (const name of ['paid', 'keyed-or-paid'])
    it(`the 402 challenge: ${name}`, async () => {
      const response = await post(name);
      assert.equal(response.status, 402);
      await response.text();
      const expected = [name, 'authenticate', 402, 'Payment required', idOf(response)];
      assert.deepEqual(await notes.until('error'), [expected]);
    });

  it('a header that is no proof of payment', async () => {
    const bad = await post('paid', {}, { 'X-Payment-Proof': '{}' });
    assert.equal(bad.status, 402);
    await bad.text();
    assert.deepEqual(await notes.until('error'), [['paid', 'authenticate', 402, 'Invalid payment proof', idOf(bad)]]);
  });

  it('not what never reached the pipeline: the rate limit, unknown paths and wrong methods', async () => {
    const limited = await startTestService(
      {
        server: { rateLimit: { max: 1 } },
        settings: { plugins: [{ source: './first.mjs' }] },
        apis: [{ name: 'x', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'sync', path: '/price' }] }],
      },
      { files: { 'first.mjs': puppetFile('first') } },
    );
    try {
      await (await limited.post('x/sync')).text();
      await assertRefused(await limited.post('x/sync'), 429, 'Too Many Requests');
      await assertRefused(await fetch(`${limited.url}/nowhere`), 404, 'Not Found');
      const url = `${limited.url}/endpoints/${limited.ids['x/sync']}`;
      await assertRefused(await fetch(url, { method: 'PUT' }), 405, 'Method Not Allowed');
    } finally {
      // Observers that still run are waited for.
      await limited.stop();
    }
    assert.equal(notes.of('sent').length, 1);
    assert.deepEqual(notes.of('error'), []);
  });
});

describe('observation hooks never delay or change the answer', () => {
  it('one that hangs', async () => {
    const { promise: stuck, resolve: release } = withResolvers();
    for (const hook of ['onResponseSent', 'onError']) {
      acts.set(`first ${hook}`, () => {
        notes.add('began');
        return stuck.then(() => notes.add('ended'));
      });
    }
    await verifyEncoded(await post('sync'), service.signer.address);
    await assertRefused(await post('down'), 502, 'API call failed');
    await notes.until('began', 2);
    await verifyEncoded(await post('sync'), service.signer.address);
    assert.deepEqual(notes.of('ended'), []);
    release();
    await notes.until('ended', 3);
  });

  it('one that blocks the process: the response is out before it begins', async () => {
    for (const [name, hook] of [
      ['sync', 'onResponseSent'],
      ['stream', 'onResponseSent'],
      ['down', 'onError'],
    ] as const) {
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
        { eval: true, execArgv: [], workerData: { flag, url: `${service.url}/endpoints/${service.ids[`x/${name}`]}` } },
      );
      const [status] = await new Promise<[number, string]>((resolve, reject) => {
        worker.once('message', resolve).once('error', reject);
      });
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
    await verifyRaw(await post('raw'), service.signer.address);
    await notes.until('attempt');
    acts.set('second onError', ({ error }) => notes.add('message', (error as Error).message));
    await assertRefused(await post('down'), 502, 'API call failed');
    assert.deepEqual(await notes.until('message'), ['API call failed'], 'each observer has an error of its own');
  });

  it('one that fails is named in the log; the others see everything', async () => {
    for (const [hook, name] of [
      ['onResponseSent', 'sync'],
      ['onError', 'down'],
    ] as const) {
      for (const [what, make] of Object.entries(hostileThrows)) {
        for (const act of [
          () => {
            throw make();
          },
          () => Promise.reject(make()),
        ]) {
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
          assert.equal(line.message, `plugin "first" failed in ${hook}`);
          assert.equal(line.fields.requestId, idOf(response));
        }
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
