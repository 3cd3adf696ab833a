/** Each fault of an upstream is a 502 in a fixed text. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { urlOf } from '../../lib/http/listen.ts';
import { oneApi } from '../support/answers.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, jsonOfSize, startUpstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const MIB = 1024 * 1024;

/** A body of any bytes. */
const bytes = (body: Buffer) =>
  faults.raw(
    Buffer.concat([
      Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`),
      body,
    ]),
  );
const zipped = gzipSync('{"value":1}');

/** Each of these is 502 `API call failed`; `aborts` where it is the service that ends the call. */
const failing: Record<string, { handler: Handler; aborts?: boolean }> = {
  'never answers': { handler: faults.hang(), aborts: true },
  'sends headers and no body': { handler: faults.hangAfterHeaders(), aborts: true },
  'drips a byte at a time for longer than the timeout': {
    handler: faults.drip(`{"value":${' '.repeat(100)}1}`),
    aborts: true,
  },
  'announces more than it sends': { handler: faults.lieAboutLength('{"value":1}', 100) },
  'announces less than it sends': {
    handler: faults.raw('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"value":1}{"value":2}'),
  },
  'announces 1 MiB and a byte': { handler: faults.big(MIB + 1) },
  'sends 1 MiB and a byte in chunks': { handler: faults.chunked(MIB + 1) },
  'sends chunks without end': { handler: faults.endless(), aborts: true },
  'sends 1 MiB and a byte as gzip': { handler: faults.coded('gzip', jsonOfSize(MIB + 1)) },
  'sends 1 MiB and a byte as brotli': { handler: faults.coded('br', jsonOfSize(MIB + 1)) },
  'sends a gzip bomb': { handler: faults.coded('gzip', Buffer.alloc(200 * MIB, ' ')) },
  'sends gzip that is none': { handler: faults.codedBytes('gzip', Buffer.from('{"value":1}')) },
  'sends half of a gzip body': { handler: faults.codedBytes('gzip', zipped.subarray(0, -6)) },
  'sends two gzip members': { handler: faults.codedBytes('gzip', Buffer.concat([zipped, gzipSync(' ')])) },
  'uses an unknown coding': { handler: faults.codedBytes('zstd', Buffer.from('{"value":1}')) },
  'closes half-way': { handler: faults.closeHalfWay() },
  'resets the connection': { handler: faults.reset() },
  'speaks no HTTP': { handler: faults.raw('SSH-2.0-OpenSSH_9.6\r\n') },
  'closes without a word': { handler: faults.raw('') },
  'sends endless headers': { handler: faults.raw(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(200_000)}\r\n\r\n`) },
  'answers HTML': { handler: faults.html() },
  'answers broken JSON': { handler: faults.invalidJson() },
  'answers two documents': { handler: faults.text('{"value":1}{"value":2}') },
  'answers JSON with comments': { handler: faults.text('{"value":1/**/}') },
  'answers NaN': { handler: faults.text('{"value":NaN}') },
  'answers a white space that JSON has not': { handler: faults.text('\u00a0') },
  'answers invalid UTF-8': { handler: bytes(Buffer.from([0x22, 0xff, 0x22])) },
  'answers overlong UTF-8': { handler: bytes(Buffer.from([0x22, 0xc0, 0x80, 0x22])) },
  'answers UTF-16': { handler: bytes(Buffer.from('\ufeff{"value":1}', 'utf16le')) },
  'answers 257 levels': { handler: faults.nested(257) },
  'answers 100,000 levels': { handler: faults.nested(100_000) },
  'answers a number beyond doubles': { handler: faults.text('{"value":1,"other":[1e400]}') },
  'answers a number beyond doubles of many digits and a short exponent': {
    handler: faults.text(`{"value":1,"other":${'1'.repeat(250)}e99}`),
  },
  'answers one in a long list of objects that are alike': {
    handler: faults.text(`[${'{"a":1,"value":1},'.repeat(9000)}{"a":${'1'.repeat(250)}e+98,"value":1}]`),
  },
  'answers a long number beyond doubles': { handler: faults.text(`{"value":1,"other":-${'9'.repeat(400)}.0}`) },
};

const statuses = [300, 301, 304, 400, 401, 404, 418, 429, 500, 502, 503, 504, 599, 600, 999];

/** Each of these is signed. */
const fine: Record<string, { handler: Handler; raw: unknown }> = {
  'exactly 1 MiB': { handler: faults.big(MIB), raw: 'a'.repeat(MIB - 2) },
  'exactly 1 MiB in chunks': { handler: faults.chunked(MIB), raw: 'a'.repeat(MIB - 2) },
  'exactly 1 MiB as gzip': { handler: faults.coded('gzip', jsonOfSize(MIB)), raw: 'a'.repeat(MIB - 2) },
  'exactly 1 MiB as deflate': { handler: faults.coded('deflate', jsonOfSize(MIB)), raw: 'a'.repeat(MIB - 2) },
  'exactly 1 MiB as brotli': { handler: faults.coded('br', jsonOfSize(MIB)), raw: 'a'.repeat(MIB - 2) },
  'a byte order mark': { handler: faults.text('\ufeff{"value":1}'), raw: { value: 1 } },
  'white space around': { handler: faults.text(' \t\r\n{"value":1}\n'), raw: { value: 1 } },
  'another media type': { handler: faults.text('{"value":1}', { type: 'text/plain' }), raw: { value: 1 } },
  'status 201': { handler: faults.text('{"value":1}', { status: 201 }), raw: { value: 1 } },
  'status 299': { handler: faults.text('{"value":1}', { status: 299 }), raw: { value: 1 } },
  '256 levels': { handler: faults.nested(256), raw: JSON.parse('['.repeat(256) + ']'.repeat(256)) },
  'a number just within doubles': {
    handler: faults.text('[1.7976931348623157e308,0e999,1e-400]'),
    raw: [1.7976931348623157e308, 0, 0],
  },
  'text that looks like a number beyond doubles': {
    handler: faults.text('["1e400","2E+999"]'),
    raw: ['1e400', '2E+999'],
  },
  'duplicate keys: the last wins': { handler: faults.text('{"value":1,"value":{"a":2},"value":3}'), raw: { value: 3 } },
  'an empty object': { handler: faults.json({}), raw: {} },
  null: { handler: faults.json(null), raw: null },
  false: { handler: faults.json(false), raw: false },
  'an empty text': { handler: faults.json(''), raw: '' },
};

const empty: Record<string, Handler> = {
  'status 204': faults.empty(204),
  'status 200 without a body': faults.empty(200),
  'status 205 without a body': faults.empty(205),
  'white space alone': faults.text(' \r\n\t'),
  'a gzip body of nothing': faults.coded('gzip', ''),
  'a byte order mark alone': faults.text('\ufeff'),
};

it('https to a port that speaks plain HTTP is told so, with what to write', async (t) => {
  const server = createServer((_, response) => response.end('{"value":1}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = urlOf(server).replace('http:', 'https:');
  const service = await serviceFor(t, oneApi(url, { e: {} }));
  await assertRefused(await service.post('api/e'), 502, 'API call failed');
  const details = service.logs.flatMap(({ fields: { stage, detail } }) => (stage === 'callApi' ? [detail] : []));
  const cure = 'no TLS is spoken at that port: write http:// in the url, or the port for https';
  assert.deepEqual(details, [`network: GET ${url} failed: ${cure} (ERR_SSL_WRONG_VERSION_NUMBER)`]);
});

describe('answers of the upstream', {
  timeout: 600_000,
}, async () => {
  const paths = new Map<string, string>();

  const route = (name: string, handler: Handler) => {
    const path = `/${encodeURIComponent(name)}`;
    paths.set(name, path);
    upstream.on(path, handler);
  };

  const upstream = await upstreamFor(suite);
  for (const [name, { handler }] of Object.entries(failing)) route(name, handler);
  for (const [name, { handler }] of Object.entries(fine)) route(name, handler);
  for (const [name, handler] of Object.entries(empty)) route(name, handler);
  for (const status of statuses)
    route(`status ${status}`, faults.raw(`HTTP/1.1 ${status} X\r\ncontent-length: 11\r\n\r\n{"value":1}`));
  route('ok', faults.json({ value: 1 }));
  // One parameter chooses the path, so that one endpoint with one slot serves all.
  const parameters = [{ name: 'p', in: 'path', required: true }];
  const service = await serviceFor(
    suite,
    oneApi(
      upstream.url,
      {
        raw: { path: '/{p}', parameters },
        encoded: { path: '/{p}', parameters, encoding: { type: 'int256', path: '$.value' } },
      },
      { settings: { maxConcurrentApiCalls: 1 }, api: { timeout: 400 } },
    ),
  );

  const ask = (endpoint: 'raw' | 'encoded', name: string) => service.post(`api/${endpoint}`, { p: name });

  /** The one slot is free again: the next request gets it at once. */
  const assertFree = async () => {
    await verifyEncoded(await ask('encoded', 'ok'), TEST_ADDRESS);
  };

  for (const [name, { aborts = false }] of Object.entries(failing)) {
    it(`502 and nothing signed when the upstream ${name}; its slot is freed`, async () => {
      await assertRefused(await ask('raw', name), 502, 'API call failed');
      if (aborts) await upstream.untilAborted(`/${encodeURIComponent(name)}`);
      await assertFree();
      await assertRefused(await ask('encoded', name), 502, 'API call failed');
      await assertFree();
    });
  }

  it('502 for every status that is no 2xx', async () => {
    for (const status of statuses) {
      await assertRefused(await ask('raw', `status ${status}`), 502, 'API call failed');
      await assertRefused(await ask('encoded', `status ${status}`), 502, 'API call failed');
    }
    await assertFree();
  });

  for (const [name, { raw }] of Object.entries(fine)) {
    it(`signed: ${name}`, async () => {
      const { rawData } = await verifyRaw(await ask('raw', name), TEST_ADDRESS);
      assert.deepEqual(rawData, raw);
    });
  }

  for (const name of Object.keys(empty)) {
    it(`no body (${name}): raw endpoints sign null, encoded ones are 502`, async () => {
      const { rawData } = await verifyRaw(await ask('raw', name), TEST_ADDRESS);
      assert.equal(rawData, null);
      await assertRefused(await ask('encoded', name), 502, 'API returned no data to encode');
    });
  }

  it('`{}` and JSON null are data: encoded endpoints find no value in them', async () => {
    await assertRefused(await ask('encoded', 'an empty object'), 502, 'No value found at path: $.value');
    await assertRefused(await ask('encoded', 'null'), 502, 'No value found at path: $.value');
  });

  it('502 when nobody listens', async () => {
    const gone = await startUpstream();
    await gone.close();
    const orphan = await startTestService(oneApi(gone.url, { e: {} }));
    try {
      await assertRefused(await orphan.post('api/e'), 502, 'API call failed');
    } finally {
      await orphan.stop();
    }
  });

  it('the log tells why, the answer never does', () => {
    const reasons = service.logs
      .filter(({ message }) => message === 'API call failed')
      .map(({ fields }) => String(fields.detail));
    for (const reason of [
      /^timeout: /,
      /^too-large: /,
      /^network: /,
      /^encoding: /,
      /^upstream status 404 to what the client asked for$/,
      /nested deeper/,
      /no JSON/,
    ]) {
      assert.ok(
        reasons.some((text) => reason.test(text)),
        `${reason} in ${JSON.stringify([...new Set(reasons)])}`,
      );
    }
  });
});
