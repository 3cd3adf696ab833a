/** A large answer means the same as a short one. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import { AbiCoder } from 'ethers';
import { assertRefused } from '../support/http.ts';
import { type Lifetime, suite } from '../support/lifetime.ts';
import { acts, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';
import { documentOf } from '../support/worst-documents.ts';

/** Bytes of answers on both sides of the borders from which they are read in another way. */
const LENGTHS = [2048, 2049, 65_536, 65_537];

const endpoints = {
  raw: { path: '/answer' },
  encoded: { path: '/answer', encoding: { type: '*', path: '*' } },
};
const upstream = await upstreamFor(suite);
const start = (lifetime: Lifetime, sources: Record<string, string> = {}, entry: object = {}) => {
  const entries = Object.fromEntries(Object.keys(sources).map((name) => [name, entry]));
  const { files, plugins } = pluginFiles(sources, entries);
  return serviceFor(lifetime, oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
};
const service = await start(suite);
const plugged = await start(suite, { puppet: puppetFile('puppet') }, { timeout: 120_000 });
after(() => acts.clear());

const answer = (text: string) => upstream.text('/answer', text);

/** The same document, short and filled up to each length. */
function sizes(members: string): string[] {
  const filled = LENGTHS.flatMap((length) => {
    const filler = `"~":"${'x'.repeat(length - Buffer.byteLength(members) - 9)}"`;
    return [`{${filler},${members}}`, `{${members},${filler}}`];
  });
  return [`{${members}}`, ...filled];
}

async function signed(type: string, path: string, of = service): Promise<unknown> {
  const { data } = await verifyEncoded(await of.post('api/encoded', { _type: type, _path: path }), TEST_ADDRESS);
  return AbiCoder.defaultAbiCoder().decode([type], data)[0];
}

/** Asserts what a service signs as it is; a message with both would take megabytes. */
async function assertRaw(data: unknown, of = service): Promise<void> {
  const { rawData } = await verifyRaw(await of.post('api/raw'), TEST_ADDRESS);
  assert.ok(canonicalize(rawData) === canonicalize(data));
}

describe('an answer is the same, short or long', () => {
  const found: [members: string, type: string, path: string, value: unknown][] = [
    ['"a":{"b":12345678901234567890123}', 'int256', '$.a.b', 12345678901234567890123n],
    ['"a":[[1],{"0":7}]', 'int256', '$.a[1].0', 7n],
    ['"a":1,"a":2', 'int256', '$.a', 2n],
    ['"a":{"b":1},"\\u0061":{"b":3}', 'int256', '$.a.b', 3n],
    ['"__proto__":{"b":4}', 'int256', '$.__proto__.b', 4n],
    ['"a":"\\ud83d\\ude00 \\n"', 'string', '$.a', '😀 \n'],
    ['"a":true', 'bool', '$.a', true],
    ['"a":[1,2,3]', 'int256', '$.a[-1:]', 3n],
    ['"a":1e400,"a":5', 'int256', '$.a', 5n],
    ['"a":[{"b":1e400}],"a":[{"b":6}],"b":7', 'int256', '$.b', 7n],
    ['"a":{"b":1e400,"c":[1e999],"b":1,"c":2}', 'int256', '$.a.b', 1n],
  ];
  for (const [members, type, path, value] of found) {
    it(`${path} of {${members}}`, async () => {
      for (const text of sizes(members)) {
        answer(text);
        assert.equal(await signed(type, path), value, text.slice(0, 40));
        await assertRaw(JSON.parse(text));
      }
    });
  }

  const refused: [members: string, path: string, text: string][] = [
    ['"a":{"b":1},"a":{"c":2}', '$.a.b', 'No value found at path: $.a.b'],
    ['"a":"text"', '$.a.length', 'No value found at path: $.a.length'],
    ['"a":[1]', '$.a[1]', 'No value found at path: $.a[1]'],
    ['"a":{"b":1}', '$.a', 'API call failed'],
    ['"a":5,"a":1e400', '$.b', 'API call failed'],
    ['"a":5,"b":[[1e400],{"a":1}]', '$.a', 'API call failed'],
    ['"a":{"b":{"c":-1e400}},"a":{"b":1e400},"b":1', '$.b', 'API call failed'],
  ];
  for (const [members, path, text] of refused) {
    it(`no ${path} of {${members}}`, async () => {
      for (const document of sizes(members)) {
        answer(document);
        await assertRefused(await service.post('api/encoded', { _type: 'int256', _path: path }), 502, text);
      }
    });
  }

  it('numbers that JSON cannot carry may stand anywhere in a long answer where none of them counts', async () => {
    for (const text of [
      documentOf({ keys: 'the same three', values: 'large numbers' }),
      `{"a":{"x":[1e400],"~":"${'x'.repeat(70_000)}"},"a":{"~":[${'1,'.repeat(40_000)}1],"x":1e400,"x":0}}`,
    ]) {
      answer(text);
      await assertRaw(JSON.parse(text));
    }
  });
});

describe('large data of a plugin', () => {
  const texts: Record<string, string> = {
    'integer keys with gaps': documentOf({ keys: 'integers with gaps' }),
    'keys of prototypes': documentOf({ keys: 'prototypes' }),
    'lone surrogates': documentOf({ keys: 'lone surrogates', members: 20 }),
    'lists 250 deep': documentOf({ members: 1, chain: 249 }, 300_000),
  };
  for (const [what, text] of Object.entries(texts)) {
    it(`is signed as it is: ${what}`, async () => {
      answer('1');
      const data: unknown = JSON.parse(text);
      acts.set('puppet onAfterApiCall', () => ({ data }));
      await assertRaw(data, plugged);
    });
  }

  it('is read as it was when it was returned, and what is found in it is encoded', async () => {
    answer('1');
    const data = { list: Array(100_000).fill(0.1), price: 12.5, none: undefined };
    acts.set('puppet onAfterApiCall', () => ({ data }));
    assert.equal(await signed('string', '$.price', plugged), '12.5');
  });

  it('that JSON cannot carry drops the request, however late that shows', async () => {
    answer('1');
    const rows = Array(60_000).fill('row');
    for (const last of [Number.NaN, () => 1, new Date(), 1n, 'x'.repeat(1024 * 1024)]) {
      acts.set('puppet onAfterApiCall', () => ({ data: [...rows, { last }] }));
      await assertRefused(await plugged.post('api/raw'), 403, 'Request dropped by plugin "puppet"');
    }
  });
});

/** Returns as data what a text of the answer says. */
const PARSING = `export default {
  name: 'parsing',
  hooks: { onAfterApiCall: ({ response }) => ({ data: JSON.parse(response.data.text) }) },
};`;

for (const isolate of [false, true]) {
  it(`integer keys with gaps, of a plugin ${isolate ? 'in a process of its own' : 'in the service'}, are signed`, async (t) => {
    const running = await start(t, { parsing: PARSING }, { isolate, timeout: 30_000 });
    const text = documentOf({ keys: 'integers in pairs' }, 500_000);
    answer(JSON.stringify({ text }));
    await assertRaw(JSON.parse(text), running);
  });
}
