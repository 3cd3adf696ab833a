/** What the upstream gets of a client, where its API was imported. `transcripts/choices.txt` has the configs. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { api, json } from './documents.ts';

const ok = { responses: { 200: { description: 'ok', ...json() } } };
const operation = (method: string, more: object) => api({ '/a': { [method]: { operationId: 'a', ...ok, ...more } } });
const query = (name: string, schema: object = { type: 'string' }) => ({ name, in: 'query', schema });
const symbols = { type: 'string' };
const ids = { type: 'string', default: 'bitcoin' };

async function imported(t: TestContext, document: object, ...args: string[]) {
  const cwd = await folderWith(t, { 'a.yaml': JSON.stringify(document) });
  const { stdout, stderr } = await runCli(t, ['import', 'a.yaml', ...args], { cwd });
  return { apis: stdout === '' ? [] : parse(stdout).apis, last: stderr.trim().split('\n').at(-1) };
}

interface Asked {
  readonly path: string;
  readonly accept: string | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

/** Serves what was imported, and gives what the upstream gets of a client's parameters. */
async function asked(t: TestContext, document: object, parameters: object): Promise<Asked> {
  const upstream = await upstreamFor(t, { '*': (_req, res) => void res.end('{}') });
  const { apis } = await imported(t, document, '--url', upstream.url);
  const service = await serviceFor(t, { apis }, { env: { CLIENT_KEY: 'key' } });
  const response = await service.post('t/a', parameters, { 'X-Api-Key': 'key' });
  assert.equal(response.status, 200);
  const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = upstream.requests;
  return { path, accept: headers.accept, type: headers['content-type'], body };
}

const vendor = 'application/vnd.example.v2+json';
const content = (types: readonly string[], schema: object = {}) => ({
  content: Object.fromEntries(types.map((type) => [type, { schema }])),
});
const answers = (...types: string[]) => ({ responses: { 200: content(types) } });
const n = { properties: { n: { type: 'integer' } } };
const takes = (...types: string[]) => operation('patch', { ...answers(), requestBody: content(types, n) });
const readOnly = { type: 'integer', readOnly: true };
const form = { properties: { symbol: { type: 'string' }, list: { type: 'array', items: { enum: ['a', 'b'] } } } };

const cases: readonly (readonly [what: string, document: object, parameters: object, expected: Partial<Asked>])[] = [
  [
    'no default: it applies its own where a client sends nothing',
    operation('get', { parameters: [query('ids', ids), query('symbols')] }),
    { symbols: 'eth' },
    { path: '/a?symbols=eth' },
  ],
  [
    'no default in a body, a header or a cookie',
    operation('post', {
      parameters: ['header', 'cookie'].map((place) => ({ name: `in-${place}`, in: place, schema: ids })),
      requestBody: json({ type: 'object', properties: { ids, symbols } }),
    }),
    { symbols: 'eth' },
    { path: '/a', body: '{"symbols":"eth"}' },
  ],
  [
    'JSON as the format, where it is one of the values',
    operation('get', { parameters: [query('file_type', { type: 'string', enum: ['xml', 'json'], default: 'xml' })] }),
    { file_type: 'xml' },
    { path: '/a?file_type=json' },
  ],
  [
    'a vendor’s JSON in Accept',
    operation('get', {
      ...answers(vendor),
      parameters: [{ name: 'Accept', in: 'header', required: true, schema: { type: 'string' } }],
    }),
    {},
    { accept: vendor },
  ],
  ['a vendor’s JSON rather than XML', operation('get', answers('application/xml', vendor)), {}, { accept: vendor }],
  [
    'a version of JSON',
    operation('get', answers('application/json; version=2')),
    {},
    { accept: 'application/json; version=2' },
  ],
  [
    'JSON itself rather than a vendor’s',
    operation('get', answers(vendor, 'application/json; charset=utf-8')),
    {},
    { accept: 'application/json' },
  ],
  ['JSON of any type', operation('get', answers('*/*')), {}, { accept: 'application/json' }],
  ['a body as a vendor’s JSON', takes(vendor), { n: 1 }, { type: vendor }],
  [
    'a body as a patch in JSON',
    takes('text/plain', 'application/merge-patch+json'),
    { n: 1 },
    { type: 'application/merge-patch+json' },
  ],
  ['a body as JSON itself', takes(vendor, 'application/json'), { n: 1 }, { type: 'application/json' }],
  [
    'what Swagger 2.0 consumes and produces',
    {
      ...{ swagger: '2.0', info: { title: 'T', version: '1' }, consumes: [vendor], produces: [vendor] },
      paths: {
        '/a': { post: { operationId: 'a', parameters: [{ name: 'body', in: 'body', schema: n }], responses: {} } },
      },
    },
    { n: 1 },
    { accept: vendor, type: vendor, body: '{"n":1}' },
  ],
  [
    'no member that is read-only',
    operation('post', { requestBody: json({ required: ['id', 'n'], properties: { id: readOnly, ...n.properties } }) }),
    { n: 1 },
    { body: '{"n":1}' },
  ],
  [
    'a form as such',
    operation('post', { requestBody: content(['application/x-www-form-urlencoded'], form) }),
    { symbol: 'ETH', list: 'a' },
    { type: 'application/x-www-form-urlencoded', body: 'symbol=ETH&list=a' },
  ],
];

describe('the upstream gets', () => {
  for (const [what, document, parameters, expected] of cases)
    it(what, async (t) => {
      const got = await asked(t, document, parameters);
      assert.deepEqual(got, { ...got, ...expected });
    });
});

it('reads OpenAPI 3.2, and a version as a number or in short', async (t) => {
  for (const openapi of ['3.2.0', '3.2', 3.2, '3.1', 3.1, 3, '3.0', '3.1.1']) {
    const { apis } = await imported(t, { ...operation('get', { parameters: [query('b')] }), openapi });
    assert.deepEqual(apis[0].endpoints, [{ name: 'a', path: '/a', parameters: [{ name: 'b' }] }], String(openapi));
  }
  const old = await imported(t, { swagger: 2, info: {}, host: 't.example', paths: { '/a': { get: {} } } });
  assert.equal(old.apis[0].endpoints.length, 1);
  const why = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
  assert.equal((await imported(t, { swagger: '1.2' })).last, `error: a.yaml: Swagger 1.2: ${why}`);
  assert.equal((await imported(t, { openapi: 4 })).last, `error: a.yaml: OpenAPI 4: ${why}`);
});
