/** A body that is no JSON object of parameters is 400 or 415, in the same words. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { assertRefused, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile } from '../support/plugin-files.ts';
import { exchangeRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

type Body = NonNullable<RequestInit['body']>;

const INVALID = 'Request body must be valid JSON';
const DEEP = 'Request body is nested too deeply';
const NO_OBJECT = 'Request body must be an object';
const NO_PARAMETERS = 'Request parameters must be an object';
const CONTENT_TYPE = 'Content-Type must be application/json';

/** Shows what `onHttpRequest` sees of the body. */
const spy = pluginFile(
  'spy',
  `onHttpRequest({ parameters }) {
    note('parameters', JSON.stringify(parameters));
    note('prototype', Object.getPrototypeOf(parameters) === Object.prototype);
  }`,
);

describe('the request body', async () => {
  const price = {
    method: 'POST',
    parameters: [{ name: 'symbol' }, { name: 'nested', in: 'body' }],
    encoding: { type: 'uint256', path: '$.price' },
  };
  const answers = { '/price': faults.json({ price: 7 }) };
  const { upstream, service, at } = await served(suite, { price }, { answers, sources: { spy } });
  const url = at('price');
  const { pathname } = new URL(url);

  beforeEach(() => {
    notes.clear();
    upstream.requests.length = 0;
  });

  const answered = async (body: Body | undefined, headers?: Record<string, string>) => {
    await verifyEncoded(await postText(url, body, headers), TEST_ADDRESS);
    return upstream.requests.at(-1)?.path;
  };
  const refused = async (body: Body, status: number, error: string, headers?: Record<string, string>) => {
    await assertRefused(await postText(url, body, headers), status, error);
    assert.equal(upstream.requests.length, 0);
    assert.deepEqual(notes.of('parameters'), []);
  };

  describe('malformed JSON is 400 Request body must be valid JSON', () => {
    const texts = [
      ...['{', '{"parameters":{}', '{"parameters":{}}}', '{}{}', '{"parameters":{},}'],
      ...["{'parameters':{}}", '{parameters:{}}', '{"parameters":undefined}', '// comment\n{}'],
      ...['{"parameters":{"symbol":NaN}}', '{"parameters":{"symbol":01}}'],
      ...['{"parameters":{"symbol":"\n"}}', '{"parameters":{"symbol":"\\x"}}', '{"a":"\0"}', '\0'],
      ...[' ', '\n', 'parameters=1', '<xml/>'],
    ];
    for (const text of texts) it(JSON.stringify(text), () => refused(text, 400, INVALID));

    it('bytes that are no UTF-8, in keys and in values', async () => {
      for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc0, 0x80]]) {
        const wrong = Buffer.from(bytes);
        const value = Buffer.concat([Buffer.from('{"parameters":{"symbol":"'), wrong, Buffer.from('"}}')]);
        const key = Buffer.concat([Buffer.from('{"'), wrong, Buffer.from('":1}')]);
        await refused(value, 400, INVALID);
        await refused(key, 400, INVALID);
      }
    });

    it('UTF-16', () => refused(Buffer.from('\ufeff{"parameters":{}}', 'utf16le'), 400, INVALID));

    it('a number that is beyond a double', async () => {
      for (const number of ['1e999', '-1e999', `1${'0'.repeat(400)}`]) {
        await refused(`{"parameters":{"symbol":${number}}}`, 400, INVALID);
        await refused(`{"parameters":{"nested":{"list":[0,[${number}]]}}}`, 400, INVALID);
        await refused(`{"parameters":{"undeclared":${number}}}`, 400, INVALID);
      }
    });
  });

  describe('JSON of more than 256 levels is 400 Request body is nested too deeply', () => {
    for (const [what, open, close] of [
      ['arrays', '[', ']'],
      ['objects', '{"a":', '}'],
    ] as const) {
      const deep = (levels: number) => `${open.repeat(levels)}${close === '}' ? '1' : ''}${close.repeat(levels)}`;
      it(`${what}, in a parameter, in one that is not declared, and beside the parameters`, async () => {
        for (const levels of [255, 257, Math.floor(65_000 / (open.length + 1))]) {
          for (const name of ['symbol', 'nested', 'undeclared', '__proto__'])
            await refused(`{"parameters":{"${name}":${deep(levels)}}}`, 400, DEEP);
          await refused(`{"other":{"x":${deep(levels)}},"parameters":{"symbol":"ETH"}}`, 400, DEEP);
        }
      });

      it(`${what} that end too early are no valid JSON`, () =>
        refused(`{"parameters":{"nested":${deep(300).slice(0, -1)}}}`, 400, INVALID));

      it(`${what} of 256 levels are answered`, async () => {
        await answered(`{"parameters":{"nested":${deep(254)}}}`);
        assert.equal(upstream.requests.at(-1)?.body, `{"nested":${deep(254)}}`);
      });
    }

    it('brackets in a text are no levels', async () => {
      await answered(`{"parameters":{"symbol":"${'[{'.repeat(300)}"}}`);
    });
  });

  describe('JSON that is no object is 400 Request body must be an object', () => {
    for (const text of ['null', '[]', '[{"parameters":{}}]', '"parameters"', '1', 'true', '1e999', '""'])
      it(text, () => refused(text, 400, NO_OBJECT));
  });

  describe('parameters that is no object is 400 Request parameters must be an object', () => {
    for (const text of ['null', '[]', '["ETH"]', '"ETH"', '""', '0', 'false', '1e999'])
      it(text, () => refused(`{"parameters":${text}}`, 400, NO_PARAMETERS));
  });

  describe('no parameters', () => {
    const none: [string, Body | undefined][] = [
      ['an empty body', ''],
      ['no body at all', undefined],
      ['no parameters key', '{}'],
      ['other keys', '{"params":{"symbol":"x"},"symbol":"y"}'],
      ['empty parameters', '{"parameters":{}}'],
      ['white space around', ' \r\n\t{ } \n'],
      ['a byte order mark in front', Buffer.from('\ufeff{}')],
    ];
    for (const [what, body] of none) {
      it(what, async () => {
        assert.equal(await answered(body), '/price');
        assert.deepEqual(notes.of('parameters'), ['{}']);
      });
    }

    it('an empty chunked body', async () => {
      const head = requestHead(`POST ${pathname}`, { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' });
      assert.equal(parseResponse(await exchangeRaw(service.url, `${head}\r\n0\r\n\r\n`)).status, 200);
    });
  });

  describe('keys that objects have anyway', () => {
    it('pollute nothing; undeclared ones reach onHttpRequest only', async () => {
      const sent =
        '{"__proto__":{"a":1},"constructor":{"prototype":{"polluted":1}},"toString":1,"hasOwnProperty":1,"symbol":"ETH"}';
      assert.equal(await answered(`{"parameters":${sent}}`), '/price?symbol=ETH');
      assert.deepEqual(notes.of('parameters'), [sent]);
      assert.deepEqual(notes.of('prototype'), [true]);
      assert.equal(Reflect.get({}, 'polluted'), undefined);
    });

    it('__proto__ does not stand in for a key of the body', async () => {
      assert.equal(await answered('{"__proto__":{"parameters":{"symbol":"ETH"}}}'), '/price');
      assert.equal(await answered('{"parameters":{"__proto__":{"symbol":"ETH"}}}'), '/price');
    });
  });

  describe('values that are sound JSON', () => {
    it('of duplicate keys the last wins', async () => {
      assert.equal(await answered('{"parameters":{"symbol":"a","symbol":"b"}}'), '/price?symbol=b');
      assert.equal(await answered('{"parameters":{"symbol":"a"},"parameters":{"symbol":"c"}}'), '/price?symbol=c');
      const last = await postText(url, '{"parameters":{"symbol":"a"},"parameters":null}');
      await assertRefused(last, 400, NO_PARAMETERS);
    });

    it('a NUL character is a character', async () => {
      assert.equal(await answered('{"parameters":{"symbol":"a\\u0000b"}}'), '/price?symbol=a%00b');
    });

    it('text of all planes arrives as UTF-8', async () => {
      const path = await answered('{"parameters":{"symbol":"ü€\u{1f4a5}"}}');
      assert.equal(path, '/price?symbol=%C3%BC%E2%82%AC%F0%9F%92%A5');
    });

    it('a lone surrogate has no UTF-8 form', async () => {
      for (const lone of ['\\ud800', 'a\\udfffb', '\\udc00\\ud800']) {
        const response = await postText(url, `{"parameters":{"symbol":"${lone}"}}`);
        await assertRefused(response, 400, 'Invalid parameter: symbol');
      }
      assert.equal(upstream.requests.length, 0);
    });

    it('1e-999, which a double makes zero, is sent as it is', async () => {
      assert.equal(await answered('{"other":1e-999,"parameters":{"undeclared":1e-999,"symbol":0}}'), '/price?symbol=0');
      // As often as it is sent, and whatever is sent in between.
      for (let count = 0; count < 2; count += 1) {
        assert.equal(await answered('{"parameters":{"symbol":1e-999}}'), '/price?symbol=1e-999');
        assert.equal(await answered('{"parameters":{"symbol":0}}'), '/price?symbol=0');
      }
    });
  });

  describe('Content-Type must be application/json', () => {
    const good = [
      ...['application/json', 'APPLICATION/JSON', '  application/json  ', 'application/json;', 'application/json; @'],
      ...['application/json; charset=utf-8', 'application/json;charset=UTF-8', 'Application/Json ; Charset="utf-8"'],
      ...['application/json; charset=', 'application/json; charset=utf-16', 'application/json; charset="'],
    ];
    for (const type of good) {
      it(`the media type may carry a charset: ${type}`, async () => {
        // A body that would be skipped, not read, is found out by its content.
        assert.equal(await answered('{"parameters":{"symbol":"ü"}}', { 'Content-Type': type }), '/price?symbol=%C3%BC');
      });
    }

    const bad = [
      ...['text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
      ...['application/jsonp', 'application/json-patch+json', 'application/vnd.api+json', 'application/ld+json'],
      ...['application', 'json', '*/*', 'application/*', ''],
      ...['application/json, text/plain', 'text/plain; application/json', ';application/json'],
    ];
    for (const type of bad)
      it(`${type || '(empty)'} is 415`, () => refused('{}', 415, CONTENT_TYPE, { 'Content-Type': type }));

    it('a missing one is 415, with and without a body', async () => {
      for (const end of ['Content-Length: 2\r\n\r\n{}', 'Content-Length: 0\r\n\r\n', '\r\n']) {
        const response = parseResponse(await exchangeRaw(service.url, requestHead(`POST ${pathname}`) + end));
        assert.deepEqual([response.status, response.body], [415, JSON.stringify({ error: CONTENT_TYPE })]);
      }
    });

    it('fetch’s own default for text is 415', async () => {
      await assertRefused(await fetch(url, { method: 'POST', body: '{}' }), 415, CONTENT_TYPE);
    });
  });

  describe('a compressed request body is refused (415)', () => {
    for (const coding of [
      ...['gzip', 'deflate', 'br', 'zstd', 'GZIP', 'x-gzip', 'x'],
      ...['identity, gzip', 'gzip, identity', 'identity;q=1', 'identityx', ',gzip'],
    ]) {
      it(coding, () => refused(gzipSync('{}'), 415, CONTENT_TYPE, { ...JSON_HEADERS, 'Content-Encoding': coding }));
    }

    it('identity is no compression, nor is a list without a coding', async () => {
      for (const coding of ['Identity', 'identity, identity', '', ' , identity ,', ','])
        assert.equal(await answered('{}', { ...JSON_HEADERS, 'Content-Encoding': coding }), '/price', coding);
    });

    it('nor may the transfer be compressed', async () => {
      const headers = { ...JSON_HEADERS, 'Transfer-Encoding': 'gzip, chunked' };
      const head = requestHead(`POST ${pathname}`, headers);
      const response = parseResponse(await exchangeRaw(service.url, `${head}\r\n2\r\n{}\r\n0\r\n\r\n`));
      assert.deepEqual([response.status, response.body], [415, JSON.stringify({ error: CONTENT_TYPE })]);
    });

    it('a small body that would inflate to much is not inflated', () =>
      refused(gzipSync(Buffer.alloc(50_000_000)), 415, CONTENT_TYPE, { ...JSON_HEADERS, 'Content-Encoding': 'gzip' }));
  });
});
