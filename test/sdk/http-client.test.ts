import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import {
  type BoundedRequest,
  createHttpClient,
  type HttpClient,
  RequestFailure,
  type RequestFailureKind,
} from '../../plugins-sdk/http-client/index.ts';
import { faults, jsonOfSize, startUpstream, type Upstream } from '../support/upstream.ts';

const MIB = 1_048_576;

let upstream: Upstream;
let client: HttpClient;

beforeEach(async () => {
  upstream = await startUpstream();
  client = createHttpClient();
});

afterEach(async () => {
  await client.close();
  await upstream.close();
});

type Given = Partial<BoundedRequest>;

function send(path: string, given: Given = {}) {
  return client.request({ method: 'GET', url: upstream.url + path, timeout: 5000, maxBytes: MIB, ...given });
}

async function text(path: string, given?: Given): Promise<string> {
  return (await send(path, given)).body.toString();
}

/** Checks the kind and the exact end of the message. */
async function fails(call: Promise<unknown>, kind: RequestFailureKind, detail: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof RequestFailure, String(error));
    assert.equal(error.kind, kind, error.message);
    assert.equal(error.message, detail);
    assert.equal(error.cause, undefined);
    return true;
  });
}

/** The same for a GET of the upstream. */
function getFails(path: string, kind: RequestFailureKind, detail: string, given?: Given): Promise<void> {
  return fails(send(path, given), kind, `GET ${upstream.url} failed: ${detail}`);
}

const TOO_LARGE = `the answer is larger than ${MIB} bytes`;
const CUT_SHORT = 'the connection was closed before the answer was complete (UND_ERR_SOCKET)';
const LATE = 'no complete answer within 200 ms';
const ABORTED = 'aborted by the caller';

describe('a request', () => {
  it('arrives as given and the answer comes back whole', async () => {
    upstream.on('/price', (_req, res) => {
      res.writeHead(201, { 'X-One': 'a', 'Set-Cookie': ['b=1', 'c=2'] }).end('{"v":0.10}');
    });
    const response = await send('/price?coin=b%20c&x=%C3%A9', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'x-LOWER': 'tab\tbyte\xe9' },
      body: '{"k":"é"}',
    });

    assert.equal(response.status, 201);
    assert.equal(response.body.toString(), '{"v":0.10}');
    assert.equal(response.headers['x-one'], 'a');
    assert.deepEqual(response.headers['set-cookie'], ['b=1', 'c=2']);

    const [seen] = upstream.requests;
    assert.equal(seen?.method, 'POST');
    assert.equal(seen?.path, '/price?coin=b%20c&x=%C3%A9');
    assert.equal(seen?.body, '{"k":"é"}');
    assert.deepEqual(seen?.rawHeaders, [
      'host',
      new URL(upstream.url).host,
      'connection',
      'keep-alive',
      'Content-Type',
      'application/json',
      'x-LOWER',
      'tab\tbyte\xe9',
      'accept-encoding',
      'gzip, deflate, br',
      'content-length',
      '10',
    ]);
  });

  it('leaves an accept-encoding of the caller alone', async () => {
    upstream.json('/', 1);
    await send('/', { headers: { 'Accept-Encoding': 'identity' } });
    assert.equal(upstream.requests[0]?.headers['accept-encoding'], 'identity');
  });

  it('takes a URL object and does not send its fragment', async () => {
    upstream.json('/a', 1);
    assert.equal(await text('', { url: new URL(`${upstream.url}/a?b#c`) }), '1');
    assert.equal(upstream.requests[0]?.path, '/a?b');
  });

  it('keeps the digits of a body', async () => {
    upstream.text('/', '{"v":12345678901234567891.10}');
    assert.equal(await text('/'), '{"v":12345678901234567891.10}');
  });

  it('gives any status to the caller and follows no redirect', async () => {
    upstream.on('/moved', faults.redirect(`${upstream.url}/target`));
    upstream.on('/broken', faults.serverError());
    upstream.on('/html', faults.html());

    const moved = await send('/moved');
    assert.equal(moved.status, 302);
    assert.equal(moved.headers.location, `${upstream.url}/target`);
    const broken = await send('/broken');
    assert.deepEqual([broken.status, broken.body.toString()], [500, '{"error":"out of order"}']);
    assert.equal((await send('/html')).headers['content-type'], 'text/html');
    assert.equal((await send('/nowhere')).status, 404);
    assert.deepEqual(
      upstream.requests.map(({ path }) => path),
      ['/moved', '/broken', '/html', '/nowhere'],
    );
  });

  it('skips interim answers', async () => {
    upstream.on('/', (_req, res) => {
      res.writeEarlyHints({ link: '</a>; rel=preload', 'content-encoding': 'zstd' });
      res.end('done');
    });
    const response = await send('/');
    assert.deepEqual([response.status, response.body.toString()], [200, 'done']);
  });

  it('survives response headers named like members of an object', async () => {
    upstream.on('/', faults.raw('HTTP/1.1 200 OK\r\n__proto__: a\r\n__proto__: b\r\nconstructor: c\r\n\r\nok'));
    const { body, headers } = await send('/');
    assert.equal(body.toString(), 'ok');
    assert.equal(headers.constructor, 'c');
  });
});

describe('an answer without a body', () => {
  for (const status of [200, 204, 304]) {
    it(`is an empty buffer with status ${status}`, async () => {
      upstream.on('/', faults.empty(status));
      const response = await send('/');
      assert.equal(response.status, status);
      assert.deepEqual(response.body, Buffer.alloc(0));
    });
  }

  it('is one to HEAD, whatever length and coding its headers name', async () => {
    upstream.on('/', faults.codedBytes('zstd', Buffer.alloc(2 * MIB)));
    const response = await send('/', { method: 'HEAD' });
    assert.deepEqual([response.status, response.body.length], [200, 0]);
    assert.equal(response.headers['content-length'], String(2 * MIB));
  });

  it('is a 304 that names the length of what it stands for', async () => {
    upstream.on('/', faults.raw('HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', { keepOpen: true }));
    const response = await send('/');
    assert.deepEqual([response.status, response.body.length], [304, 0]);
  });

  it('is a 204 with a content coding', async () => {
    upstream.on('/', faults.raw('HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n', { keepOpen: true }));
    assert.equal((await send('/')).status, 204);
  });
});

describe('the deadline', () => {
  const given = { timeout: 200 };

  it('cuts an upstream that never answers', async () => {
    upstream.on('/', faults.hang());
    await getFails('/', 'timeout', LATE, given);
    await upstream.untilAborted('/');
  });

  it('cuts an upstream that stops after its headers', async () => {
    upstream.on('/', faults.hangAfterHeaders());
    await getFails('/', 'timeout', LATE, given);
    await upstream.untilAborted('/');
  });

  it('cuts a body that drips', async () => {
    upstream.on('/', faults.drip(`"${'a'.repeat(98)}"`));
    await getFails('/', 'timeout', LATE, given);
    await upstream.untilAborted('/');
  });

  it('cuts an endless row of interim answers', async () => {
    upstream.on('/', (req) => {
      const timer = setInterval(() => req.socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
      req.socket.on('close', () => clearInterval(timer));
    });
    await getFails('/', 'timeout', LATE, given);
    await upstream.untilAborted('/');
  });

  it('cuts a TLS handshake that never comes to an end, and its socket', async () => {
    let ended: () => void = () => {};
    const closed = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const silent = createServer((socket) =>
      socket
        .on('error', () => {})
        .on('close', ended)
        .resume(),
    );
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const address = silent.address();
    assert.ok(address && typeof address === 'object');
    const url = `https://127.0.0.1:${address.port}`;

    await fails(send('', { ...given, url: `${url}/?secret` }), 'timeout', `GET ${url} failed: ${LATE}`);
    await closed;
    await new Promise((resolve) => silent.close(resolve));
  });

  it('leaves an answer alone that is slow but in time', async () => {
    upstream.on('/', faults.slow(50, faults.json('late')));
    assert.equal(await text('/'), '"late"');
  });

  it('may be as long as anybody likes', async () => {
    upstream.on('/', faults.slow(50, faults.json(1)));
    for (const timeout of [2 ** 31, Number.MAX_VALUE, Number.POSITIVE_INFINITY]) {
      assert.equal(await text('/', { timeout }), '1');
    }
  });
});

describe('the size bound', () => {
  it('takes exactly maxBytes, with a length', async () => {
    upstream.on('/', faults.big(MIB));
    assert.deepEqual((await send('/')).body, jsonOfSize(MIB));
  });

  it('takes exactly maxBytes, chunked', async () => {
    upstream.on('/', faults.chunked(MIB));
    assert.deepEqual((await send('/')).body, jsonOfSize(MIB));
  });

  it('puts a body of one-byte chunks together', async () => {
    upstream.on('/', faults.chunked(20_000, 1));
    assert.deepEqual((await send('/', { maxBytes: 20_000 })).body, jsonOfSize(20_000));
    await getFails('/', 'too-large', 'the answer is larger than 19999 bytes', { maxBytes: 19_999 });
  });

  it('refuses one byte more by the announced length alone', async () => {
    upstream.on('/', (_req, res) => {
      res.writeHead(200, { 'content-length': MIB + 1 }).flushHeaders();
    });
    await getFails('/', 'too-large', TOO_LARGE);
    await upstream.untilAborted('/');
  });

  it('refuses one byte more, chunked', async () => {
    upstream.on('/', faults.chunked(MIB + 1));
    await getFails('/', 'too-large', TOO_LARGE);
  });

  it('cuts a body without end', async () => {
    upstream.on('/', faults.endless());
    await getFails('/', 'too-large', TOO_LARGE);
    await upstream.untilAborted('/');
  });

  it('can be zero', async () => {
    upstream.on('/empty', faults.empty(200));
    upstream.text('/one', '1');
    upstream.on('/coded', faults.coded('gzip', ''));
    assert.equal(await text('/empty', { maxBytes: 0 }), '');
    assert.equal(await text('/coded', { maxBytes: 0 }), '');
    await getFails('/one', 'too-large', 'the answer is larger than 0 bytes', { maxBytes: 0 });
  });
});

describe('a coded body', () => {
  const codings = ['gzip', 'deflate', 'raw-deflate', 'br'] as const;

  for (const coding of codings) {
    it(`is decompressed: ${coding}`, async () => {
      upstream.on('/', faults.coded(coding, '{"v":0.10}'));
      const response = await send('/');
      assert.equal(response.body.toString(), '{"v":0.10}');
      assert.equal(response.headers['content-encoding'], coding === 'raw-deflate' ? 'deflate' : coding);
    });

    it(`may have exactly maxBytes, compressible or not: ${coding}`, async () => {
      const noise = randomBytes(MIB);
      upstream.on('/even', faults.coded(coding, jsonOfSize(MIB)));
      upstream.on('/noise', faults.coded(coding, noise));
      assert.deepEqual((await send('/even')).body, jsonOfSize(MIB));
      assert.deepEqual((await send('/noise')).body, noise);
    });

    it(`may not have one byte more: ${coding}`, async () => {
      upstream.on('/even', faults.coded(coding, jsonOfSize(MIB + 1)));
      upstream.on('/noise', faults.coded(coding, randomBytes(MIB + 1)));
      await getFails('/even', 'too-large', TOO_LARGE);
      await getFails('/noise', 'too-large', TOO_LARGE);
    });

    it(`that is cut, followed by something or doubled is refused: ${coding}`, async () => {
      const whole = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
      const name = coding === 'raw-deflate' ? 'deflate' : coding;
      const stream = whole[name]('{"v":1}');
      const broken = {
        '/cut': stream.subarray(0, -1),
        '/empty': Buffer.alloc(0),
        '/doubled': Buffer.concat([stream, stream]),
        '/followed': Buffer.concat([stream, Buffer.from('{"v":2}')]),
        '/padded': Buffer.concat([stream, Buffer.alloc(8)]),
      };
      for (const [path, bytes] of Object.entries(broken)) {
        upstream.on(path, faults.codedBytes(name, bytes));
        await assert.rejects(send(path), { name: 'RequestFailure', kind: 'encoding' }, path);
      }
    });
  }

  it('says what is wrong with it', async () => {
    const stream = gzipSync('{"v":1}');
    upstream.on('/plain', faults.codedBytes('gzip', Buffer.from('{"v":1}')));
    upstream.on('/doubled', faults.codedBytes('gzip', Buffer.concat([stream, stream])));
    await getFails('/plain', 'encoding', 'the answer is not valid gzip');
    await getFails('/doubled', 'encoding', 'the answer is more than one gzip stream');
  });

  it('with a wrong checksum is refused', async () => {
    const stream = gzipSync('{"v":1}');
    stream.writeUInt8(stream.readUInt8(stream.length - 8) ^ 1, stream.length - 8);
    upstream.on('/', faults.codedBytes('gzip', stream));
    await getFails('/', 'encoding', 'the answer is not valid gzip');
  });

  it('is known by x-gzip, in any case and with identity', async () => {
    upstream.on('/x', faults.codedBytes('x-gzip', gzipSync('1')));
    upstream.on('/upper', faults.codedBytes('GZip', gzipSync('2')));
    upstream.on('/identity', faults.codedBytes('identity', Buffer.from('3')));
    assert.deepEqual([await text('/x'), await text('/upper'), await text('/identity')], ['1', '2', '3']);
  });

  it('in an unknown coding or in several is refused at its headers', async () => {
    for (const coding of ['zstd', 'compress', 'gzip, gzip', 'identity, gzip', '__proto__']) {
      upstream.on('/', (_req, res) => {
        res.writeHead(200, { 'content-encoding': coding }).flushHeaders();
      });
      await getFails('/', 'encoding', 'the answer has an unknown content encoding');
    }
    await upstream.untilAborted('/', 5);
  });

  it('that would grow a thousandfold is cut at the bound', async () => {
    for (const coding of ['gzip', 'br'] as const) {
      upstream.on('/', faults.coded(coding, Buffer.alloc(64 * MIB)));
      const before = process.memoryUsage().arrayBuffers;
      let peak = 0;
      const watch = setInterval(() => {
        peak = Math.max(peak, process.memoryUsage().arrayBuffers);
      }, 1);
      await getFails('/', 'too-large', TOO_LARGE);
      peak = Math.max(peak, process.memoryUsage().arrayBuffers);
      clearInterval(watch);
      assert.ok(peak - before < 8 * MIB, `${coding} took ${peak - before} bytes`);
    }
  });
});

describe('a broken answer', () => {
  it('closed half-way is a failure', async () => {
    upstream.on('/', faults.closeHalfWay());
    await getFails('/', 'network', CUT_SHORT);
  });

  it('closed half-way is a failure after "connection: close" too, chunked or with a length', async () => {
    const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\n';
    upstream.on('/chunked', faults.raw(`${head}Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n`));
    upstream.on('/length', faults.raw(`${head}Content-Length: 2\r\n\r\n1`));
    await getFails('/chunked', 'network', 'the answer is not valid HTTP');
    await getFails('/length', 'network', 'the body is not as long as announced (UND_ERR_RES_CONTENT_LENGTH_MISMATCH)');
  });

  it('shorter than announced is a failure', async () => {
    upstream.on('/', faults.lieAboutLength('{"v":1}', 100));
    await getFails('/', 'network', CUT_SHORT);
  });

  it('longer than announced is a failure when more arrives with it', async () => {
    upstream.on('/', faults.lieAboutLength('12345', 3));
    await assert.rejects(send('/'), { name: 'RequestFailure', kind: 'network' });
  });

  it('reset at once is a failure, and is not asked for again on a new connection', async () => {
    upstream.on('/', faults.reset());
    await getFails('/', 'network', 'the connection was reset (ECONNRESET)');
    assert.equal(upstream.requests.length, 1);
  });

  it('without length is whole when the connection was closed in order, and a failure when it was reset', async () => {
    upstream.on('/closed', faults.raw('HTTP/1.0 200 OK\r\n\r\n{"v":1}'));
    upstream.on('/reset', (req) => {
      req.socket.write('HTTP/1.0 200 OK\r\n\r\n{"v":1');
      setTimeout(() => req.socket.resetAndDestroy(), 50);
    });
    assert.equal(await text('/closed'), '{"v":1}');
    await getFails('/reset', 'network', 'the connection was reset (ECONNRESET)');
  });

  it('that is not HTTP is a failure that quotes nothing of it', async () => {
    upstream.on('/', faults.raw('HELLO secret\r\n\r\n'));
    await getFails('/', 'network', 'the answer is not valid HTTP');
  });

  it('with headers without end is a failure', async () => {
    upstream.on('/', faults.raw(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`));
    await getFails('/', 'network', 'the headers of the answer are too large (UND_ERR_HEADERS_OVERFLOW)');
  });

  it('from nobody is a failure', async () => {
    const gone = await startUpstream();
    await gone.close();
    const call = send('', { url: `${gone.url}/path?query` });
    await fails(call, 'network', `GET ${gone.url} failed: the connection was refused (ECONNREFUSED)`);
  });

  it('that goes on after its end is not taken for the answer to the next call', async () => {
    const whole = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    upstream.on('/two', (req) => {
      req.socket.write(whole('1'));
      setTimeout(() => req.socket.write(whole('poison')), 30);
    });
    upstream.text('/', '2');
    assert.equal(await text('/two'), '1');
    await upstream.until(() => upstream.sockets === 0);
    assert.equal(await text('/'), '2');
  });

  it('does not spoil the next call', async () => {
    upstream.on('/bad', faults.closeHalfWay());
    upstream.json('/good', 1);
    for (let round = 0; round < 3; round += 1) {
      await assert.rejects(send('/bad'), { kind: 'network' });
      assert.equal(await text('/good'), '1');
    }
  });
});

describe('the signal', () => {
  it('ends a call whose upstream hangs, and the upstream sees it', async () => {
    upstream.on('/', faults.hang());
    const controller = new AbortController();
    const call = send('/', { signal: controller.signal });
    await upstream.untilRequested('/');
    assert.equal(upstream.open, 1);
    controller.abort();
    await fails(call, 'aborted', `GET ${upstream.url} failed: ${ABORTED}`);
    await upstream.untilAborted('/');
    assert.equal(upstream.open, 0);
  });

  it('ends a call in the middle of its body', async () => {
    const controller = new AbortController();
    upstream.on('/', (_req, res) => {
      res.write('{"a":', () => setTimeout(() => controller.abort(), 20));
    });
    await getFails('/', 'aborted', ABORTED, { signal: controller.signal });
    await upstream.untilAborted('/');
  });

  it('ends a call that has only begun to connect', async () => {
    upstream.json('/', 1);
    const controller = new AbortController();
    const call = send('/', { signal: controller.signal });
    controller.abort();
    await fails(call, 'aborted', `GET ${upstream.url} failed: ${ABORTED}`);
    assert.equal(upstream.requests.length, 0);
    await upstream.until(() => upstream.sockets === 0);
  });

  it('that has aborted before stops the call before anything is sent', async () => {
    await getFails('/', 'aborted', ABORTED, { signal: AbortSignal.abort() });
    assert.equal(upstream.connections, 0);
  });

  it('has no effect on a finished call, and nothing of the call stays on it', async () => {
    upstream.json('/', 1);
    const controller = new AbortController();
    const { signal } = controller;
    assert.equal(await text('/', { signal }), '1');
    assert.deepEqual(getEventListeners(signal, 'abort'), []);
    controller.abort();
    assert.equal(await text('/'), '1');
    assert.equal(upstream.connections, 1);
  });

  it('of one call does not touch another', async () => {
    upstream.on('/hang', faults.hang());
    upstream.on('/slow', faults.slow(100, faults.json(1)));
    const controller = new AbortController();
    const other = text('/slow');
    const call = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    controller.abort();
    await assert.rejects(call, { kind: 'aborted' });
    assert.equal(await other, '1');
  });
});

describe('the connections', () => {
  it('carry 200 calls at once, each with its own answer', async () => {
    upstream.on('*', (_req, res, { path }) => void res.end(path));
    const paths = Array.from({ length: 200 }, (_, index) => `/${index}?n=${index}`);
    assert.deepEqual(await Promise.all(paths.map((path) => text(path))), paths);
    assert.ok(upstream.connections <= 128, `${upstream.connections} connections`);
  });

  it('leave no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    upstream.json('/', 1);
    upstream.on('/reset', faults.reset());
    upstream.on('/gzip', faults.coded('gzip', '1'));
    const controller = new AbortController();
    await Promise.all([send('/'), send('/gzip'), assert.rejects(send('/reset'))]);
    const aborted = assert.rejects(send('/', { signal: controller.signal }));
    controller.abort();
    await aborted;
    assert.equal(timers(), before);
  });

  it('are kept for the next call', async () => {
    upstream.json('/', 1);
    for (let count = 0; count < 5; count += 1) await send('/');
    assert.equal(upstream.connections, 1);
  });

  it('are kept after an error status, a 204 and a coded body', async () => {
    upstream.on('/500', faults.serverError());
    upstream.on('/204', faults.empty(204));
    upstream.on('/gzip', faults.coded('gzip', '1'));
    for (const path of ['/500', '/204', '/gzip', '/404']) await send(path);
    assert.equal(upstream.connections, 1);
  });

  it('are no more than allowed: further calls wait for their turn in order', async () => {
    await client.close();
    client = createHttpClient({ connections: 2 });
    upstream.on('*', faults.slow(20, faults.json(1)));
    const paths = ['/0', '/1', '/2', '/3', '/4', '/5'];
    assert.deepEqual(await Promise.all(paths.map((path) => text(path))), ['1', '1', '1', '1', '1', '1']);
    assert.deepEqual(upstream.requests.map(({ path }) => path).sort(), paths);
    assert.equal(upstream.connections, 2);
  });

  it('count the wait for one against the deadline, and a call that gave up is never sent', async () => {
    await client.close();
    client = createHttpClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    upstream.json('/', 1);
    const controller = new AbortController();
    const first = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    await getFails('/late', 'timeout', LATE, { timeout: 200 });
    const next = text('/');
    controller.abort();
    await assert.rejects(first, { kind: 'aborted' });
    assert.equal(await next, '1');
    assert.deepEqual(
      upstream.requests.map(({ path }) => path),
      ['/hang', '/'],
    );
  });

  it('come back after every failure', async () => {
    await client.close();
    client = createHttpClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    upstream.on('/reset', faults.reset());
    upstream.on('/large', faults.endless());
    upstream.on('/zstd', faults.codedBytes('zstd', Buffer.of(1)));
    upstream.on('/bad', faults.codedBytes('gzip', Buffer.of(1)));
    upstream.json('/', 1);
    await assert.rejects(send('/hang', { timeout: 50 }), { kind: 'timeout' });
    await assert.rejects(send('/reset'), { kind: 'network' });
    await assert.rejects(send('/large'), { kind: 'too-large' });
    await assert.rejects(send('/zstd'), { kind: 'encoding' });
    await assert.rejects(send('/bad'), { kind: 'encoding' });
    await assert.rejects(send('/', { headers: { 'x y': 'z' } }), { kind: 'network' });
    assert.equal(await text('/'), '1');
    await upstream.untilIdle();
  });

  it('survive many invalid calls in the queue', async () => {
    await client.close();
    client = createHttpClient({ connections: 1 });
    upstream.on('/hang', faults.hang());
    const controller = new AbortController();
    const first = send('/hang', { signal: controller.signal });
    await upstream.untilRequested('/hang');
    const calls = Array.from({ length: 5000 }, () =>
      assert.rejects(send('/', { method: 'NO GOOD' }), { kind: 'network' }),
    );
    controller.abort();
    await assert.rejects(first, { kind: 'aborted' });
    await Promise.all(calls);
    upstream.json('/', 1);
    assert.equal(await text('/'), '1');
  });

  it('closed by the server after an answer are replaced', async () => {
    upstream.on('/', (req, res) => {
      res.on('finish', () => req.socket.end()).end('1');
    });
    for (let count = 1; count <= 3; count += 1) {
      assert.equal(await text('/'), '1');
      await upstream.until(() => upstream.sockets === 0);
      assert.equal(upstream.connections, count);
    }
  });

  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    it(`that turn out to be closed are replaced once for ${method}`, async () => {
      upstream.on('*', faults.onReuse(faults.empty(200), faults.reset()));
      await send('/first');
      assert.equal((await send('/', { method })).status, 200);
      assert.deepEqual(
        upstream.requests.map((request) => `${request.method} ${request.path}`),
        ['GET /first', `${method} /`, `${method} /`],
      );
      assert.equal(upstream.connections, 2);
    });
  }

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    it(`that turn out to be closed fail a ${method}`, async () => {
      upstream.json('/first', 1);
      await send('/first');
      upstream.on('/', faults.reset());
      await assert.rejects(send('/', { method, body: '{}' }), { kind: 'network' });
      assert.equal(upstream.requests.length, 2);
    });
  }

  it('that are closed again, when new, fail the call', async () => {
    upstream.json('/first', 1);
    await send('/first');
    upstream.on('/', faults.reset());
    await assert.rejects(send('/'), { kind: 'network' });
    assert.equal(upstream.requests.length, 3);
  });

  it('closed after a part of the answer are not replaced', async () => {
    upstream.json('/first', 1);
    await send('/first');
    upstream.on('/', faults.raw('HTTP/1.1 2'));
    await assert.rejects(send('/'), { kind: 'network' });
    assert.equal(upstream.requests.length, 2);
  });
});

describe('close', () => {
  it('ends calls under way and queued, closes idle sockets and refuses later calls', async () => {
    await client.close();
    client = createHttpClient({ connections: 2 });
    upstream.json('/', 1);
    upstream.on('/hang', faults.hang());
    await Promise.all([send('/'), send('/')]);
    const running = send('/hang');
    await upstream.untilRequested('/hang');
    const calls = [running, send('/hang'), send('/hang'), send('/hang')].map((call) =>
      fails(call, 'aborted', `GET ${upstream.url} failed: the client is closed`),
    );
    await client.close();
    await Promise.all(calls);
    await upstream.until(() => upstream.sockets === 0);
    await getFails('/', 'aborted', 'the client is closed');
    await client.close();
  });
});

describe('an invalid request', () => {
  const REFUSED = 'the request is not valid HTTP (UND_ERR_INVALID_ARG)';

  it('fails without quoting a header, the path or the query', async () => {
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x-key': 'secret\r\nx: y' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x key': 'secret' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'x-key': 'secret\u{1f600}' } });
    await getFails('/?q=secret', 'network', REFUSED, { headers: { 'transfer-encoding': 'chunked' } });
    assert.equal(upstream.requests.length, 0);
  });

  it('fails by its URL', async () => {
    await fails(send('', { url: 'no url secret' }), 'network', 'GET failed: the URL is not valid');
    const scheme = 'GET failed: the URL must start with http:// or https://';
    await fails(send('', { url: 'file:///etc/passwd' }), 'network', scheme);
    await fails(
      send('', { url: 'http://user:secret@host.invalid/' }),
      'network',
      'GET http://host.invalid failed: the URL must not contain a user name or password',
    );
  });

  it('is a wrong number of connections', () => {
    for (const connections of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => createHttpClient({ connections }), RangeError);
    }
  });
});
