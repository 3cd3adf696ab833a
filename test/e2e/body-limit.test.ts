/** A body of more than 64 KB is 413, however it is sent. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { assertRefused, endpointUrl, eventually, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { exchangeRaw, openRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
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
  const upstream = await upstreamFor(suite);
  upstream.json('/price', { price: 7 });
  const service = await serviceFor(suite, {
    apis: [
      {
        name: 'prices',
        url: upstream.url,
        auth: { type: 'apiKey', keys: ['k'] },
        endpoints: [{ name: 'get', path: '/price', encoding: { type: 'uint256', path: '$.price' } }],
      },
    ],
  });
  const url = endpointUrl(service, 'prices/get');
  const post = `POST ${new URL(url).pathname}`;

  const headers = { ...JSON_HEADERS, 'X-Api-Key': 'k' };

  for (const letter of ['x', '€']) {
    it(`with Content-Length: 65,536 bytes are read and one more is not (letters of ${Buffer.byteLength(letter)})`, async () => {
      assert.equal(Buffer.byteLength(bodyOf(LIMIT, letter)), LIMIT);
      await verifyEncoded(await postText(url, bodyOf(LIMIT, letter), headers), TEST_ADDRESS);
      await assertRefused(await postText(url, bodyOf(LIMIT + 1, letter), headers), 413, TOO_LARGE);
    });
  }

  for (const size of [1, 1000, 70_000]) {
    it(`in chunks of ${size}: 65,536 bytes are read and one more is not`, async () => {
      const head = `${requestHead(post, { ...headers, 'Transfer-Encoding': 'chunked' })}\r\n`;
      const fits = parseResponse(await exchangeRaw(service.url, head + chunked(bodyOf(LIMIT), size)));
      assert.equal(fits.status, 200);
      await verifyEncoded(JSON.parse(fits.body), TEST_ADDRESS);
      // The one byte more is announced as a chunk of its own, and the end never comes.
      const connection = openRaw(service.url);
      connection.write(head + chunked(bodyOf(LIMIT), size).slice(0, -5));
      connection.write('1\r\n \r\n');
      await connection.until((text) => text.endsWith(JSON.stringify({ error: TOO_LARGE })));
      assert.equal(parseResponse(connection.text).status, 413);
      connection.destroy();
    });
  }

  it('an announced length is enough: nothing of the body needs to arrive', async () => {
    for (const length of [LIMIT + 1, Number.MAX_SAFE_INTEGER]) {
      const connection = openRaw(service.url);
      connection.write(`${requestHead(post, { ...headers, 'Content-Length': String(length) })}\r\n`);
      await connection.until((text) => text.endsWith(JSON.stringify({ error: TOO_LARGE })));
      assert.equal(parseResponse(connection.text).status, 413);
      connection.destroy();
    }
  });

  it('an endless body is refused at the limit', async () => {
    const connection = openRaw(service.url);
    connection.write(`${requestHead(post, { ...headers, 'Transfer-Encoding': 'chunked' })}\r\n`);
    const chunk = `8000\r\n${' '.repeat(0x8000)}\r\n`;
    for (let sent = 0; sent < 4; sent++) connection.write(chunk);
    await connection.until((text) => text.endsWith(JSON.stringify({ error: TOO_LARGE })));
    connection.destroy();
  });

  it('415 comes before 413, and 413 before 400 and 401', async () => {
    const body = 'x'.repeat(LIMIT + 1);
    const type = await postText(url, body, { 'Content-Type': 'text/plain' });
    await assertRefused(type, 415, 'Content-Type must be application/json');
    await assertRefused(await postText(url, body), 413, TOO_LARGE);
  });

  it('400 comes before the pipeline, which is where keys are asked for', async () => {
    await assertRefused(await postText(url, '{'), 400, 'Request body must be valid JSON');
    await assertRefused(await postText(url, '{}'), 401, 'Missing X-Api-Key header');
  });

  it('a body that is longer than announced ends with its announced length', async () => {
    const connection = openRaw(service.url);
    const head = requestHead(post, { ...headers, Connection: 'keep-alive', 'Content-Length': '2' });
    connection.write(`${head}\r\n{}`);
    await connection.until((text) => text.includes('"signature"'));
    connection.write('surplus\r\n\r\n');
    const text = await connection.closed;
    assert.ok(text.endsWith('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'), text);
  });

  it('a body that ends before its announced length is a broken request: bare 400, nothing is signed', async () => {
    const before = upstream.requests.length;
    const connection = openRaw(service.url);
    connection.write(`${requestHead(post, { ...headers, 'Content-Length': '10' })}\r\n{}`);
    connection.end();
    assert.equal(await connection.closed, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    assert.equal(upstream.requests.length, before);
  });

  it('a client that leaves in the middle of its body is logged as gone', async () => {
    const before = service.logs.length;
    const connection = openRaw(service.url);
    connection.write(`${requestHead(post, { ...headers, Expect: '100-continue', 'Content-Length': '10' })}\r\n`);
    await connection.until((text) => text === 'HTTP/1.1 100 Continue\r\n\r\n');
    connection.write('{}');
    connection.destroy();
    const line = await eventually(
      () => service.logs.slice(before).find(({ message }) => / 499 [\d.]+ms$/.test(message)),
      'the log line',
    );
    assert.match(line.message, /^prices\/get 499 /);
  });

  it('the connection goes on behind a body that is refused: the rest of it is read', async () => {
    const connection = openRaw(service.url);
    const keep = { ...headers, Connection: 'keep-alive', 'Content-Length': String(LIMIT + 1) };
    connection.write(`${requestHead(post, keep)}\r\n${' '.repeat(LIMIT + 1)}${requestHead('GET /health')}\r\n`);
    assert.match(await connection.closed, /\{"error":"Request body too large"\}HTTP\/1\.1 200 OK\r\n/);
  });
});

it('a plugin that looks at the body first, and takes more of it, leaves it to the built-in', async (t) => {
  const upstream = await upstreamFor(t);
  upstream.json('/price', { price: 7 });
  const looks = `export default { name: 'looks', setup: () => ({ hooks: { parseBody: async (httpRequest) => {
    await httpRequest.readBody(${2 * LIMIT});
  } } }) };`;
  const { files, plugins } = pluginFiles({ looks });
  const config = oneApi(upstream.url, { price: {} }, { settings: { plugins } });
  const service = await serviceFor(t, config, { files });
  const url = endpointUrl(service, 'api/price');
  assert.equal((await postText(url, bodyOf(100))).status, 200);
  await assertRefused(await postText(url, bodyOf(LIMIT + 1)), 413, TOO_LARGE);
  // The built-in looks at the type, also of a body that comes in chunks.
  const head = requestHead(`POST ${new URL(url).pathname}`, { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' });
  const { status } = parseResponse(await exchangeRaw(service.url, `${head}\r\n${chunked(bodyOf(100), 50)}`));
  assert.equal(status, 200);
});
