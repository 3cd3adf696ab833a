/** The HTTP client reads answers whole, decoded and within their bound. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { faults } from '../../support/upstream.ts';
import { getFails, MIB, renewed, send, TOO_LARGE, text, upstream } from './setup.ts';

renewed();

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

describe('a coded body', () => {
  const codings = ['gzip', 'deflate', 'br'] as const;

  for (const coding of codings) {
    it(`that is cut, followed by something or doubled is refused: ${coding}`, async () => {
      const whole = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
      const stream = whole[coding]('{"v":1}');
      const broken = {
        '/cut': stream.subarray(0, -1),
        '/doubled': Buffer.concat([stream, stream]),
        '/followed': Buffer.concat([stream, Buffer.from('{"v":2}')]),
        '/padded': Buffer.concat([stream, Buffer.alloc(8)]),
      };
      for (const [path, bytes] of Object.entries(broken)) {
        upstream.on(path, faults.codedBytes(coding, bytes));
        await assert.rejects(send(path), { name: 'RequestFailure', kind: 'encoding' }, path);
      }
    });
  }

  it('is deflate only in the format of zlib', async () => {
    upstream.on('/', faults.codedBytes('deflate', deflateRawSync('{"v":1}')));
    await getFails('/', 'encoding', 'the answer is not valid deflate');
  });

  it('with a wrong checksum is refused', async () => {
    const stream = gzipSync('{"v":1}');
    stream.writeUInt8(stream.readUInt8(stream.length - 8) ^ 1, stream.length - 8);
    upstream.on('/', faults.codedBytes('gzip', stream));
    await getFails('/', 'encoding', 'the answer is not valid gzip');
  });

  it('is known by x-gzip, in any case, by identity, and beside empty elements', async () => {
    upstream.on('/x', faults.codedBytes('x-gzip', gzipSync('1')));
    upstream.on('/upper', faults.codedBytes('GZip', gzipSync('2')));
    upstream.on('/identity', faults.codedBytes('identity', Buffer.from('3')));
    // RFC 9110, section 5.6.1: empty elements of a list say nothing.
    upstream.on('/empty', faults.codedBytes(', gzip ,', gzipSync('4')));
    const answers = [await text('/x'), await text('/upper'), await text('/identity'), await text('/empty')];
    assert.deepEqual(answers, ['1', '2', '3', '4']);
  });

  it('in an unknown coding or in several is refused at its headers', async () => {
    for (const [coding, said] of [
      ['zstd', 'the unknown content encoding zstd'],
      ['compress', 'the unknown content encoding compress'],
      ['__proto__', 'the unknown content encoding __proto__'],
      ['gzip, gzip', 'several content encodings (gzip, gzip)'],
      ['identity, gzip', 'several content encodings (identity, gzip)'],
      ['key=secret', 'an unknown content encoding'],
      ['gzip, key=secret', 'several content encodings'],
    ] as const) {
      upstream.on('/', (_req, res) => {
        res.writeHead(200, { 'content-encoding': coding }).flushHeaders();
      });
      await getFails('/', 'encoding', `the answer has ${said}`);
    }
    await upstream.untilAborted('/', 7);
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
