/** A body of more than 64 KB is 413, however it is sent. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LRUCache } from 'lru-cache';
import { assertRefused, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { exchangeRaw, openRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const LIMIT = 65_536;
const TOO_LARGE = 'Request body too large';

/** A sound body of just this many bytes. */
function bodyOf(bytes: number, letter = 'x'): string {
  const frame = '{"parameters":{"padding":""}}';
  const count = Math.floor((bytes - frame.length) / Buffer.byteLength(letter));
  const body = `{"parameters":{"padding":"${letter.repeat(count)}"}}`;
  return body + ' '.repeat(bytes - Buffer.byteLength(body));
}

function chunked(body: string, size: number): string {
  const chunks: string[] = [];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.slice(at, at + size);
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  }
  return `${chunks.join('')}0\r\n\r\n`;
}

describe('413 Request body too large', async () => {
  const auth = { type: 'apiKey', keys: ['k'] };
  const price = { auth, encoding: { type: 'uint256', path: '$.price' } };
  const { upstream, service, at } = await served(suite, { price }, { answers: { '*': faults.json({ price: 7 }) } });
  const url = at('price');
  const post = `POST ${new URL(url).pathname}`;

  const headers = { ...JSON_HEADERS, 'X-Api-Key': 'k' };
  const CHUNKED = { 'Transfer-Encoding': 'chunked' };

  /** Begins a request to the endpoint, with these headers more. */
  const begin = (more: Record<string, string>, body = '') => {
    const connection = openRaw(service.url);
    connection.write(`${requestHead(post, { ...headers, ...more })}\r\n${body}`);
    return connection;
  };
  /** Asserts that it is refused before its end. */
  const assertTooLarge = async (more: Record<string, string>, body?: string) => {
    const connection = begin(more, body);
    await connection.until((text) => text.endsWith(JSON.stringify({ error: TOO_LARGE })));
    assert.equal(parseResponse(connection.text).status, 413);
    connection.destroy();
  };

  for (const letter of ['x', '€']) {
    it(`with Content-Length: 65,536 bytes are read and one more is not (letters of ${Buffer.byteLength(letter)})`, async () => {
      assert.equal(Buffer.byteLength(bodyOf(LIMIT, letter)), LIMIT);
      await verifyEncoded(await postText(url, bodyOf(LIMIT, letter), headers), TEST_ADDRESS);
      await assertRefused(await postText(url, bodyOf(LIMIT + 1, letter), headers), 413, TOO_LARGE);
    });
  }

  for (const size of [1, 1000, 70_000]) {
    it(`in chunks of ${size}: 65,536 bytes are read and one more is not`, async () => {
      const body = chunked(bodyOf(LIMIT), size);
      const fits = parseResponse(await begin(CHUNKED, body).closed);
      assert.equal(fits.status, 200);
      await verifyEncoded(JSON.parse(fits.body), TEST_ADDRESS);
      // The one byte more is announced as a chunk of its own, and the end never comes.
      await assertTooLarge(CHUNKED, `${body.slice(0, -5)}1\r\n \r\n`);
    });
  }

  it('one of more than 512 characters is not looked up among known ones, for which all of it would be hashed', async (t) => {
    const { mock } = t.mock.method(LRUCache.prototype, 'get');
    for (const bytes of [512, 513]) await verifyEncoded(await postText(url, bodyOf(bytes), headers), TEST_ADDRESS);
    const texts = mock.calls.map(({ arguments: [text] }) => String(text)).filter((text) => text.startsWith('{"param'));
    assert.deepEqual(texts, [bodyOf(512)]);
  });

  it('an announced length is enough: nothing of the body needs to arrive', async () => {
    for (const length of [LIMIT + 1, Number.MAX_SAFE_INTEGER]) await assertTooLarge({ 'Content-Length': `${length}` });
  });

  it('an endless body is refused at the limit', () =>
    assertTooLarge(CHUNKED, `8000\r\n${' '.repeat(0x8000)}\r\n`.repeat(4)));

  it('415 comes before 413, 413 before 400, and 400 before 401', async () => {
    const body = 'x'.repeat(LIMIT + 1);
    const type = await postText(url, body, { 'Content-Type': 'text/plain' });
    await assertRefused(type, 415, 'Content-Type must be application/json');
    await assertRefused(await postText(url, body), 413, TOO_LARGE);
    await assertRefused(await postText(url, '{'), 400, 'Request body must be valid JSON');
  });

  it('a body that is longer than announced ends with its announced length', async () => {
    const connection = begin({ Connection: 'keep-alive', 'Content-Length': '2' }, '{}');
    await connection.until((text) => text.includes('"signature"'));
    connection.write('surplus\r\n\r\n');
    const text = await connection.closed;
    assert.ok(text.endsWith('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'), text);
  });

  it('a body that ends before its announced length is a broken request: bare 400, nothing is signed', async () => {
    const before = upstream.requests.length;
    const connection = begin({ 'Content-Length': '10' }, '{}');
    connection.end();
    assert.equal(await connection.closed, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    assert.equal(upstream.requests.length, before);
  });

  it('the connection goes on behind a body that is refused: the rest of it is read', async () => {
    const keep = { Connection: 'keep-alive', 'Content-Length': `${LIMIT + 1}` };
    const { closed } = begin(keep, `${' '.repeat(LIMIT + 1)}${requestHead('GET /health')}\r\n`);
    assert.match(await closed, /\{"error":"Request body too large"\}HTTP\/1\.1 200 OK\r\n/);
  });
});

it('a plugin that looks at the body first, and takes more of it, leaves it to the built-in', async (t) => {
  const looks = `export default { name: 'looks', setup: () => ({ hooks: { parseBody: async (httpRequest) => {
    await httpRequest.readBody(${2 * LIMIT});
  } } }) };`;
  const answers = { '*': faults.json({ price: 7 }) };
  const { service, at } = await served(t, { price: {} }, { answers, sources: { looks } });
  const url = at('price');
  assert.equal((await postText(url, bodyOf(100))).status, 200);
  await assertRefused(await postText(url, bodyOf(LIMIT + 1)), 413, TOO_LARGE);
  // The built-in looks at the type, also of a body that comes in chunks.
  const head = requestHead(`POST ${new URL(url).pathname}`, { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' });
  const { status } = parseResponse(await exchangeRaw(service.url, `${head}\r\n${chunked(bodyOf(100), 50)}`));
  assert.equal(status, 200);
});

it('a plugin that takes less of the body than there is leaves it to the built-in', async (t) => {
  const looks = `export default { name: 'looks', setup: () => ({ hooks: { parseBody: async (httpRequest) => {
    await httpRequest.readBody(10).catch(() => undefined);
  } } }) };`;
  const answers = { '*': faults.json({ price: 7 }) };
  const { at } = await served(t, { price: {} }, { answers, sources: { looks } });
  assert.equal((await postText(at('price'), bodyOf(100))).status, 200);
});
