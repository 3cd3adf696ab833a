/** What the HTTP parser refuses gets a bare answer, and the connection closes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { exchangeRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const BARE_400 = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n';
const BARE_431 = 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n';

const CHUNKED: [string, string] = ['Transfer-Encoding', 'chunked'];

describe('errors of the HTTP parser', async () => {
  const { upstream, service, at } = await served(suite, { e: {} }, { answers: { '/e': faults.json(1) } });
  const post = `POST ${new URL(at('e')).pathname}`;

  /** All connections are kept alive by the request: it is the error that closes them. */
  const head = (line: string, headers: Record<string, string> = {}) =>
    requestHead(line, { Connection: 'keep-alive', ...headers });
  const withBody = (headers: Record<string, string>) => `${head(post, { ...JSON_HEADERS, ...headers })}\r\n`;
  /** What would be a request of its own if the lengths were read another way. */
  const smuggled = `${head('GET /health')}\r\n`;

  /** A request of two braces, whose length is given so. */
  const sized = (length: string) => `${withBody({ 'Content-Length': length })}{}`;
  const chunked = (chunks: string) => withBody({ 'Transfer-Encoding': 'chunked' }) + chunks;
  const twice = (...headers: [name: string, value: string][]) => withBody(Object.fromEntries(headers));
  const bad: Readonly<Record<string, string>> = {
    'Content-Length and Transfer-Encoding': `${twice(['Content-Length', '5'], CHUNKED)}0\r\n\r\n${smuggled}`,
    'Transfer-Encoding and Content-Length': `${twice(CHUNKED, ['Content-Length', '5'])}0\r\n\r\n${smuggled}`,
    'two lengths': `${twice(['Content-Length', '2'], ['content-length', '3'])}{}${smuggled}`,
    'the same length twice': `${twice(['Content-Length', '2'], ['content-length', '2'])}{}${smuggled}`,
    'a list of lengths': sized('2, 2'),
    'a signed length': sized('+2'),
    'a negative length': sized('-2'),
    'a hexadecimal length': sized('0x2'),
    'an overflowing length': sized('18446744073709551618'),
    'a transfer coding that is not chunked': `${withBody({ 'Transfer-Encoding': 'xchunked' })}0\r\n\r\n`,
    'chunked that is not last': `${withBody({ 'Transfer-Encoding': 'chunked, gzip' })}0\r\n\r\n`,
    'a chunk size that is no number': chunked('zz\r\n'),
    'a negative chunk size': chunked('-1\r\n'),
    'a chunk size that overflows': chunked('10000000000000000\r\n'),
    'a chunk that is longer than its size': chunked('1\r\n{}\r\n0\r\n\r\n'),
    'a chunk that ends in a bare LF': chunked('2\n{}\n0\n\n'),
    'two hosts': `${head('GET /health')}Host: other\r\n\r\n`,
    'a space before the colon': `${head('GET /health')}X-Name : value\r\n\r\n`,
    'a folded header': `${head('GET /health')}X-Name: one\r\n two\r\n\r\n`,
    'a header without a colon': `${head('GET /health')}X-Name\r\n\r\n`,
    'a header without a name': `${head('GET /health')}: value\r\n\r\n`,
    'a NUL in a header': `${head('GET /health')}X-Name: a\0b\r\n\r\n`,
    'a bare CR in a header': `${head('GET /health')}X-Name: a\rX-Other: b\r\n\r\n`,
    'bare LF as line ends': 'GET /health HTTP/1.1\nHost: service\n\n',
    'a NUL in the path': `${head('GET /he\0alth')}\r\n`,
    'a space in the path': `${head('GET /he alth')}\r\n`,
    'bytes above 0x7f in the path': `${head('GET /h\xc3\xa9alth')}\r\n`,
    'an unknown method': `${head('FETCH /health')}\r\n`,
    'a method in lower case': `${head('get /health')}\r\n`,
    'an unknown version': 'GET /health HTTP/3.0\r\nHost: service\r\n\r\n',
    'HTTP/2 with prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a TLS handshake': '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03',
    nonsense: 'nonsense\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(bad)) {
    it(`${what} is a bare 400`, async () => assert.equal(await exchangeRaw(service.url, bytes), BARE_400));
  }

  it('HTTP/1.1 without Host is a bare 400 (RFC 9112, section 3.2)', async () => {
    assert.equal(await exchangeRaw(service.url, 'GET /health HTTP/1.1\r\n\r\n'), BARE_400);
  });

  const long = 'a'.repeat(20_000);
  for (const [what, bytes] of Object.entries({
    'a very long path': `${head(`GET /${long}`)}\r\n`,
    'a very long query': `${head(`GET /health?${long}`)}\r\n`,
    'a very long header': `${head('GET /health', { 'X-Name': long })}\r\n`,
    'a very long API key': withBody({ 'X-Api-Key': long }),
    'very long header names': `${head('GET /health', { [long]: 'x' })}\r\n`,
    'very many headers': `${head('GET /health')}${'X-Name: value\r\n'.repeat(2000)}\r\n`,
  })) {
    it(`${what} is a bare 431`, async () => assert.equal(await exchangeRaw(service.url, bytes), BARE_431));
  }

  it('a path just below the limit is answered', async () => {
    const text = await exchangeRaw(service.url, `${requestHead(`GET /${'a'.repeat(15_000)}`)}\r\n`);
    assert.equal(parseResponse(text).body, '{"error":"Not Found"}');
  });

  it('a length behind 2,500 headers counts, and so does a second host: none is dropped', async () => {
    const many = 'N: v\r\n'.repeat(2500);
    const body = `${head(post, JSON_HEADERS)}${many}Content-Length: 2\r\n\r\n{}${requestHead('GET /health')}\r\n`;
    const lines = (await exchangeRaw(service.url, body)).match(/HTTP\/1\.1 \d+/g);
    assert.deepEqual(lines, ['HTTP/1.1 200', 'HTTP/1.1 200']);
    assert.equal(await exchangeRaw(service.url, `${head('GET /health')}${many}Host: other\r\n\r\n`), BARE_400);
    assert.equal(upstream.requests.splice(0).length, 1);
  });

  it('CONNECT closes the connection: this is no proxy', async () => {
    assert.equal(await exchangeRaw(service.url, 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n'), '');
  });

  it('none of all that reached the upstream, and the service is well', async () => {
    assert.deepEqual(upstream.requests, []);
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
  });

  it('what a client sends never becomes a header of the answer', async () => {
    const headers = { ...JSON_HEADERS, Origin: 'https://a.example%0d%0aX-Injected:1', 'Content-Length': '2' };
    const path = `${post}%0d%0aX-Injected:%201`;
    const names = [
      ...['access-control-allow-origin', 'access-control-expose-headers', 'connection', 'content-length'],
      ...['content-type', 'date', 'ratelimit', 'ratelimit-policy', 'x-request-id'],
    ];
    for (const line of [post, path]) {
      const text = await exchangeRaw(service.url, `${requestHead(line, headers)}\r\n{}`);
      assert.deepEqual(Object.keys(parseResponse(text).headers).sort(), names);
    }
  });
});
