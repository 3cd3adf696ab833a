/** What an upstream may answer is signed as it is, up to each bound. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults, type Handler, jsonOfSize } from '../support/upstream.ts';

const MIB = 1024 * 1024;
const mebibyte = 'a'.repeat(MIB - 2);

/** Each of these is signed. */
const fine: Record<string, [handler: Handler, raw: unknown]> = {
  'exactly 1 MiB': [faults.big(MIB), mebibyte],
  'exactly 1 MiB in chunks': [faults.chunked(MIB), mebibyte],
  'exactly 1 MiB as gzip': [faults.coded('gzip', jsonOfSize(MIB)), mebibyte],
  'exactly 1 MiB as deflate': [faults.coded('deflate', jsonOfSize(MIB)), mebibyte],
  'exactly 1 MiB as brotli': [faults.coded('br', jsonOfSize(MIB)), mebibyte],
  'a byte order mark': [faults.text('\ufeff{"value":1}'), { value: 1 }],
  'white space around': [faults.text(' \t\r\n{"value":1}\n'), { value: 1 }],
  'another media type': [faults.text('{"value":1}', { type: 'text/plain' }), { value: 1 }],
  'status 201': [faults.text('{"value":1}', { status: 201 }), { value: 1 }],
  'status 299': [faults.text('{"value":1}', { status: 299 }), { value: 1 }],
  '256 levels': [faults.nested(256), JSON.parse('['.repeat(256) + ']'.repeat(256))],
  'a number just within doubles': [faults.text('[1.7976931348623157e308,0e999,1e-400]'), [Number.MAX_VALUE, 0, 0]],
  'text that looks like a number beyond doubles': [faults.text('["1e400","2E+999"]'), ['1e400', '2E+999']],
  'duplicate keys: the last wins': [faults.text('{"value":1,"value":{"a":2},"value":3}'), { value: 3 }],
  'an empty object': [faults.json({}), {}],
  null: [faults.json(null), null],
  false: [faults.json(false), false],
  'an empty text': [faults.json(''), ''],
};

const empty: Record<string, Handler> = {
  'status 204': faults.empty(204),
  'status 200 without a body': faults.empty(200),
  'status 205 without a body': faults.empty(205),
  'white space alone': faults.text(' \r\n\t'),
  'a gzip body of nothing': faults.coded('gzip', ''),
  'a body that is announced as gzip and has no bytes': faults.codedBytes('gzip', Buffer.alloc(0)),
  'a body that is announced as deflate and has no bytes': faults.codedBytes('deflate', Buffer.alloc(0)),
  'a body that is announced as br and has no bytes': faults.codedBytes('br', Buffer.alloc(0)),
  'a byte order mark alone': faults.text('\ufeff'),
};

describe('answers of the upstream', { timeout: 600_000 }, async () => {
  const all = [...Object.entries(fine).map(([name, [handler]]) => [name, handler] as const), ...Object.entries(empty)];
  const answers = Object.fromEntries(all.map(([name, handler]) => [`/${encodeURIComponent(name)}`, handler]));
  // One parameter chooses the path, so that one endpoint serves all.
  const bare = { path: '/{p}', parameters: [{ name: 'p', in: 'path', required: true }] };
  const endpoints = { bare, encoded: { ...bare, encoding: { type: 'int256', path: '$.value' } } };
  const { raw, refused } = await served(suite, endpoints, { answers, api: { timeout: 60_000 } });

  for (const [name, [, said]] of Object.entries(fine))
    it(`signed: ${name}`, async () => assert.deepEqual(await raw('bare', { p: name }), said));

  for (const name of Object.keys(empty)) {
    it(`no body (${name}): raw endpoints sign null, encoded ones are 502`, async () => {
      assert.equal(await raw('bare', { p: name }), null);
      await refused(502, 'API returned no data to encode', 'encoded', { p: name });
    });
  }

  it('`{}` and JSON null are data: encoded endpoints find no value in them', async () => {
    for (const name of ['an empty object', 'null'])
      await refused(502, 'No value found at path: $.value', 'encoded', { p: name });
  });
});
