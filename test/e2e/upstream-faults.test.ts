/** Each fault of an upstream is a 502 in a fixed text. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { urlOf } from '../../lib/http/listen.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, jsonOfSize, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const MIB = 1024 * 1024;
const TOO_LARGE = `too-large: the answer is larger than ${MIB} bytes`;

/** A body of any bytes. */
const bytes = (body: Buffer) => {
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return faults.raw(Buffer.concat([Buffer.from(head), body]));
};
const zipped = gzipSync('{"value":1}');
const ones = '1'.repeat(250);

/** What is no HTTP, with the parser's code in the log. */
const noHttp = (code: string, answer: string) => ({
  [`network: the answer is not valid HTTP (HPE_${code})`]: { [`breaks HTTP: ${code}`]: faults.raw(answer) },
});

/** Where the service ends the call: what the log says, and what the upstream does. */
const endless: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  'timeout: no complete answer within 1000 ms': {
    'never answers': faults.hang(),
    'sends headers and no body': faults.hangAfterHeaders(),
    'drips a byte at a time for longer than the timeout': faults.drip(`{"value":${' '.repeat(100)}1}`),
  },
  [TOO_LARGE]: { 'sends chunks without end': faults.endless() },
};
const aborted = Object.values(endless).flatMap(Object.keys);

/** Each of these is 502 `API call failed`, by what the log says of it. */
const failing: typeof endless = {
  ...endless,
  [TOO_LARGE]: {
    ...endless[TOO_LARGE],
    'announces 1 MiB and a byte': faults.big(MIB + 1),
    'sends 1 MiB and a byte in chunks': faults.chunked(MIB + 1),
    'sends 1 MiB and a byte as gzip': faults.coded('gzip', jsonOfSize(MIB + 1)),
    'sends 1 MiB and a byte as deflate': faults.coded('deflate', jsonOfSize(MIB + 1)),
    'sends 1 MiB and a byte as brotli': faults.coded('br', jsonOfSize(MIB + 1)),
    'sends 1 MiB and a byte that no coding makes shorter': faults.coded('gzip', randomBytes(MIB + 1)),
    'sends a gzip bomb': faults.coded('gzip', Buffer.alloc(5 * MIB, ' ')),
  },
  'encoding: the answer is not valid gzip': {
    'sends gzip that is none': faults.codedBytes('gzip', Buffer.from('{"value":1}')),
    'sends half of a gzip body': faults.codedBytes('gzip', zipped.subarray(0, -6)),
  },
  'encoding: the answer is more than one gzip stream': {
    'sends two gzip members': faults.codedBytes('gzip', Buffer.concat([zipped, gzipSync(' ')])),
    'sends two gzip members, the first empty': faults.codedBytes('gzip', Buffer.concat([gzipSync(''), zipped])),
  },
  'encoding: the answer has the unknown content encoding zstd': {
    'uses an unknown coding': faults.codedBytes('zstd', Buffer.from('{"value":1}')),
  },
  'encoding: the answer has several content encodings (gzip, br)': {
    'uses two codings': faults.codedBytes('gzip, br', Buffer.from('x')),
  },
  'network: the connection was closed before the answer was complete (UND_ERR_SOCKET)': {
    'announces more than it sends': faults.lieAboutLength('{"value":1}', 100),
    'closes half-way': faults.closeHalfWay(),
    'closes without a word': faults.raw(''),
  },
  'network: it went on after the end of the answer': {
    'announces less than it sends': faults.raw('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"value":1}{"value":2}'),
  },
  'network: the connection was reset (ECONNRESET)': { 'resets the connection': faults.reset() },
  ...noHttp('INVALID_CONSTANT', 'SSH-2.0-OpenSSH_9.6\r\n'),
  ...noHttp('INVALID_STATUS', 'HTTP/1.1 2000 OK\r\n\r\n'),
  ...noHttp('INVALID_VERSION', 'HTTP/2 200 OK\r\ncontent-length: 1\r\n\r\n7'),
  ...noHttp('INVALID_HEADER_TOKEN', 'HTTP/1.1 200 OK\r\nx y: z\r\ncontent-length: 1\r\n\r\n7'),
  ...noHttp('CR_EXPECTED', 'HTTP/1.1 200 OK\ncontent-length: 1\n\n7'),
  ...noHttp('LF_EXPECTED', 'HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 1\r\n\r\n7'),
  ...noHttp('STRICT', 'HTTP/1.1 200 OK\r\nx: y\r\n\rX'),
  ...noHttp('INVALID_CONTENT_LENGTH', 'HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n7'),
  ...noHttp('INVALID_CHUNK_SIZE', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n7\r\n'),
  'network: it sent 100 Continue unasked': {
    'says 100 Continue': faults.raw('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7'),
  },
  'network: the headers of the answer are too large (UND_ERR_HEADERS_OVERFLOW)': {
    'sends endless headers': faults.raw(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(200_000)}\r\n\r\n`),
  },
  'the body is no JSON': {
    'answers HTML': faults.html(),
    'answers broken JSON': faults.invalidJson(),
    'answers two documents': faults.text('{"value":1}{"value":2}'),
    'answers JSON with comments': faults.text('{"value":1/**/}'),
    'answers NaN': faults.text('{"value":NaN}'),
    'answers a white space that JSON has not': faults.text('\u00a0'),
  },
  'the body is not in UTF-8': {
    'answers invalid UTF-8': bytes(Buffer.from([0x22, 0xff, 0x22])),
    'answers overlong UTF-8': bytes(Buffer.from([0x22, 0xc0, 0x80, 0x22])),
    'answers UTF-16': bytes(Buffer.from('\ufeff{"value":1}', 'utf16le')),
  },
  'nested deeper than 256 levels': {
    'answers 257 levels': faults.nested(257),
    'answers 100,000 levels': faults.nested(100_000),
  },
  'a number is too large for standard JSON': {
    'answers a number beyond doubles': faults.text('{"value":1,"other":[1e400]}'),
    'answers one of many digits and a short exponent': faults.text(`{"value":1,"other":${ones}e99}`),
    'answers one in a long list of objects that are alike': faults.text(
      `[${'{"a":1,"value":1},'.repeat(9000)}{"a":${ones}e+98,"value":1}]`,
    ),
    'answers a long number beyond doubles': faults.text(`{"value":1,"other":-${'9'.repeat(400)}.0}`),
  },
};

/** Those that blame what the client asked for. */
const ofClient = [400, 404];
const statuses = [300, 301, 302, 303, 304, 307, 308, 400, 401, 404, 418, 429, 500, 502, 503, 504, 599, 600, 999];

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

describe('faults of the upstream', { timeout: 600_000 }, async () => {
  const route = (name: string, handler: Handler) => upstream.on(`/${encodeURIComponent(name)}`, handler);
  const upstream = await upstreamFor(suite);
  for (const handlers of Object.values(failing))
    for (const [name, handler] of Object.entries(handlers)) route(name, handler);
  for (const status of statuses)
    route(
      `status ${status}`,
      faults.raw(`HTTP/1.1 ${status} X\r\nlocation: /ok\r\ncontent-length: 11\r\n\r\n{"value":1}`),
    );
  route('ok', faults.json({ value: 1 }));
  // One parameter chooses the path, so that one endpoint with one slot serves all.
  const raw = { path: '/{p}', parameters: [{ name: 'p', in: 'path', required: true }] };
  const endpoints = { raw, encoded: { ...raw, encoding: { type: 'int256', path: '$.value' } } };
  const serve = (timeout: number) =>
    serviceFor(suite, oneApi(upstream.url, endpoints, { settings: { maxConcurrentApiCalls: 1 }, api: { timeout } }));
  const [patient, hasty] = [await serve(60_000), await serve(1000)];
  const ask = (endpoint: 'raw' | 'encoded', name: string, service = patient) =>
    service.post(`api/${endpoint}`, { p: name });

  /** The one slot is free again: the next request gets it at once. */
  const assertFree = async (service = patient) => verifyEncoded(await ask('encoded', 'ok', service), TEST_ADDRESS);

  /** What the log says of the last failure. */
  const detail = (service = patient) => {
    const { fields } = service.logs.findLast(({ message }) => message === 'API call failed') ?? assert.fail();
    return String(fields.detail).replace(/GET http:\S+ failed: /, '');
  };

  for (const [said, handlers] of Object.entries(failing))
    for (const name of Object.keys(handlers)) {
      it(`502 and nothing signed when the upstream ${name}; its slot is freed, and the log tells why`, async () => {
        const service = said.startsWith('timeout') ? hasty : patient;
        await assertRefused(await ask('raw', name, service), 502, 'API call failed');
        assert.equal(detail(service), said);
        if (aborted.includes(name)) await upstream.untilAborted(`/${encodeURIComponent(name)}`);
        // It has the one slot, too: else it would be told that the server is busy.
        await assertRefused(await ask('encoded', name, service), 502, 'API call failed');
        await assertFree(service);
      });
    }

  it('502 for every status that is no 2xx, and no redirect is followed', async () => {
    for (const status of statuses) {
      await assertRefused(await ask('raw', `status ${status}`), 502, 'API call failed');
      assert.equal(
        detail(),
        `upstream status ${status}${ofClient.includes(status) ? ' to what the client asked for' : ''}`,
      );
      await assertRefused(await ask('encoded', `status ${status}`), 502, 'API call failed');
    }
    await assertFree();
  });
});
