/** Documents with much that no config can say: what is wrong is left out, and the rest is a config that the service takes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { readDocument } from '../../cli/import/read.ts';
import { apiBlock } from '../../cli/import/write.ts';
import type { Tree } from '../../config/yaml.ts';
import { folderWith, runCli } from '../cli/run.ts';
import { api, fileText, get, imported, json, loaded } from './documents.ts';

/** What is left out, and the endpoints. */
async function outcome(tree: Tree) {
  const made = await imported(tree);
  if (made.apis.length > 0) await loaded(fileText(made));
  const endpoints = made.apis.flatMap((each) => apiBlock(each).endpoints);
  return { endpoints, reasons: made.leftOut.map(({ what = '', reason }) => `${what}: ${reason}`) };
}

describe('an odd document', () => {
  it('may refer to itself, to nowhere, and in a long chain', async () => {
    const to = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    const schemas: Record<string, object> = { loop: to('loop'), anchor: { $ref: '#many' } };
    for (let i = 0; i < 1000; i++) schemas[`c${i}`] = to(`c${i + 1}`);
    // Twice as many at each level: an answer that nobody could write down.
    for (let i = 0; i < 60; i++) schemas[`b${i}`] = { properties: { x: to(`b${i + 1}`), y: to(`b${i + 1}`) } };
    const itself = Array.from({ length: 40 }, () => to('many'));
    schemas.many = { allOf: [{ properties: { z: { type: 'string' } } }, ...itself] };
    const of = (name: string) => json(to(name));
    const paths = Object.fromEntries(
      ['loop', 'c0', 'b0', 'many', 'anchor', 'absent', 'constructor', '__proto__'].map((name) => [
        `/${name}`,
        { put: { requestBody: { required: true, ...of(name) }, responses: { 200: of(name) } } },
      ]),
    );
    const tree = api({ ...paths, '/self': { $ref: '#/paths/~1self' } }, { components: { schemas } });
    const { endpoints, reasons } = await outcome(tree);
    const listed = endpoints.map(({ path }) => path);
    assert.deepEqual(listed, ['/b0', '/many']);
    assert.deepEqual(endpoints[1]?.parameters, [{ name: 'z', in: 'body', schema: { type: 'string' } }]);
    assert.deepEqual([...new Set(reasons)].sort(), [
      ': has a reference that leads nowhere',
      ': has a reference that leads to itself',
      'body parameter "x": is too large: what lies deep in it may be anything',
      'body parameter "y": is too large: what lies deep in it may be anything',
    ]);
  });

  it('may refer to nowhere in a part that is not needed, which is listed', async () => {
    const nowhere = { $ref: '#/nowhere' };
    const put = {
      parameters: [{ name: 'q', in: 'query', schema: nowhere }],
      requestBody: json({ required: ['n'], properties: { n: { type: 'integer' } } }),
      responses: { 200: json({ properties: { n: { type: 'integer' }, x: nowhere } }) },
    };
    const { endpoints, reasons } = await outcome(api({ '/a': { put } }));
    const parameters = [{ name: 'n', in: 'body', required: true, schema: { type: 'integer' } }];
    assert.deepEqual(endpoints, [{ name: 'put-a', path: '/a', method: 'PUT', parameters }]);
    const parts = ['query parameter "q"', 'its answer'];
    assert.deepEqual(reasons.sort(), parts.map((what) => `${what}: has a reference that leads nowhere`).sort());
  });

  it('may be deep, and large only within bounds', async (t) => {
    const deep = (levels: number) => `${'{"properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`;
    const of = (schema: string) =>
      JSON.stringify(api({ '/a': { put: { requestBody: json('HERE'), responses: {} } } })).replace('"HERE"', schema);
    const anchor = (i: number) => `a${i}: &a${i} [${`*a${i - 1},`.repeat(i === 0 ? 0 : 10)}1]`;
    // More values than the largest number.
    const anchors = Array.from({ length: 400 }, (_, i) => anchor(i)).join('\n');
    const cwd = await folderWith(t, {
      'deep.json': of(deep(45)),
      'deeper.json': of(deep(5000)),
      'bomb.yaml': anchors,
      'proto.json': of('{"properties":{"__proto__":{"type":"string"}}}'),
      'proto.yaml': `openapi: 3.0.0\n__proto__: { a: 1 }\npaths: {}`,
      'long.json': `{"openapi":"3.0.0","x":"${'x'.repeat(16 * 1024 * 1024)}"}`,
      'other.json': JSON.stringify(api({}, { openapi: '9.0' })),
    });
    const said = async (file: string) =>
      ((await runCli(t, ['import', file], { cwd })).stderr.split('\n').at(-2) ?? '').replace(cwd, '');
    assert.equal(await said('deep.json'), 'note: 1 endpoint');
    assert.match(await said('deeper.json'), /deeper\.json:1:\d+: is nested too deeply$/);
    assert.match(await said('proto.json'), /proto\.json:1:\d+: the key "__proto__" is not allowed$/);
    assert.match(await said('bomb.yaml'), /more than 1000000 values, aliases counted each time$/);
    assert.match(await said('proto.yaml'), /the key "__proto__" is not allowed$/);
    assert.equal(await said('long.json'), 'error: /long.json: larger than 16 MiB');
    assert.match(await said('other.json'), /^error: other\.json: OpenAPI 9\.0: import reads OpenAPI 3\.0, 3\.1 and /);
  });

  it('may have parameters and ways in of every kind', async () => {
    const parameters = [
      { name: 'Host', in: 'header', required: true },
      { name: 'Transfer-Encoding', in: 'header' },
      { name: 'a b', in: 'header', schema: { type: 'string' } },
      { name: 'c;d', in: 'cookie' },
      { name: 'ok', in: 'cookie', schema: { type: 'boolean', default: 'no' } },
      { name: '_path', in: 'query' },
      { name: 'elsewhere', in: 'path' },
      { name: 'r', in: 'query', required: true, schema: { type: 'string', default: 'x' } },
      { name: 'n', in: 'query', schema: { type: 'integer', enum: ['1', 2, null] } },
      { name: 'look', in: 'query', schema: { type: 'string', pattern: '(?<a)b' } },
      { name: 'flags', in: 'query', schema: { type: 'number', pattern: '/^1$/i' } },
      { name: 'api_key', in: 'query', required: true, schema: { default: 'demo-key-literal' } },
      { name: 'token', in: 'query', schema: { type: 'string', default: 'literal' } },
      'nonsense',
      null,
    ];
    const components = { securitySchemes: { odd: { type: 'mutualTLS' } } };
    const { endpoints, reasons } = await outcome(api(get({ parameters, security: [{ odd: [] }] }), { components }));
    assert.deepEqual(endpoints[0]?.parameters, [
      { name: 'ok', in: 'cookie', schema: { type: 'boolean' } },
      { name: 'r', required: true },
      { name: 'n', schema: { type: 'integer', enum: [1, 2, null] } },
      { name: 'look' },
      { name: 'flags', schema: { type: 'number' } },
      { name: 'api_key', fixed: '$' + '{UPSTREAM_T_API_KEY}' },
      { name: 'token' },
    ]);
    assert.deepEqual(reasons.sort(), [
      'a parameter: has no "name" or no "in"',
      'a parameter: has no "name" or no "in"',
      'cookie parameter "ok": has a default, which the upstream applies by itself',
      'header parameter "Host": goes by itself',
      'its security: needs the credentials "odd", of a kind that no config has',
      'parameter "Transfer-Encoding": the header Transfer-Encoding cannot be configured',
      'parameter "_path": "_path" is a reserved parameter',
      'parameter "a b": is no valid header name',
      'parameter "c;d": is no valid cookie name',
      'path parameter "elsewhere": is not in the path',
      'query parameter "api_key": is taken for a credential of yours, $' + '{UPSTREAM_T_API_KEY}',
      'query parameter "flags": "pattern" is in slashes, and is not checked',
      'query parameter "r": has a default, which a required parameter cannot have',
      'query parameter "token": has a default, which the upstream applies by itself',
      'the schema of parameter "look": is no pattern that can be used: Invalid regular expression: /(?<a)b/u: Invalid capture group name',
    ]);
  });

  it('loses no more than what is wrong in it', async (t) => {
    const key = (name: string) => ({ type: 'apiKey', in: 'header', name });
    const body = (name: string) => ({ name, in: 'body', schema: { properties: { [name]: {} } } });
    const field = { name: 'field', in: 'formData', schema: { type: 'integer', maximum: 7 } };
    const [odd, limits] = [{ toString: 1 }, { minimum: 'LONG', exclusiveMinimum: -1.5, maximum: 1e21, enum: ['LONG'] }];
    const document = {
      ...{ swagger: '2.0', host: 't.example', securityDefinitions: { bad: key('X Bad'), good: key('X-Good') } },
      paths: {
        '/form': { post: { parameters: [field], security: [{ bad: [], good: [] }] } },
        '/json': { parameters: [body('a'), body('b'), { in: 'body', name: odd }], post: { parameters: [body('a')] } },
        '/get': { get: { parameters: [{ name: 'q', in: 'query', type: 'number', ...limits }] } },
      },
    };
    const text = JSON.stringify(document).replaceAll('"LONG"', '0.12345678901234567890');
    const tree = await readDocument(join(await folderWith(t, { 'a.json': text }), 'a.json'));
    const { apis, leftOut } = await imported(tree);
    const sent = apis.map(apiBlock).flatMap(({ headers = {} }) => Object.keys(headers));
    assert.deepEqual(sent, ['X-Good']);
    const parameters = apis[0]?.endpoints.flatMap((endpoint) => endpoint.parameters);
    assert.deepEqual(parameters, [
      { name: 'field', in: 'body', schema: { type: 'integer', maximum: 7 } },
      { name: 'a', in: 'body' },
      { name: 'q', schema: { type: 'number', exclusiveMinimum: -1.5, maximum: 1e21 } },
    ]);
    assert.deepEqual(leftOut.map(({ what, reason }) => `${what}: ${reason}`).sort(), [
      ...['a body', 'body "b"'].map((what) => `${what}: is a second one, and left out`),
      'header "X Bad" of the API api: is no valid header name',
      'query parameter "q": "minimum" is no number that can be kept, and is not checked',
      'query parameter "q": has a choice that is no number that can be kept, so that any value is taken',
    ]);
  });

  it('may quote choices that are no texts, also where null is one', async () => {
    const cases = [
      { type: ['integer', 'null'], stated: ['1', '2', null], read: [1, 2, null] },
      { type: ['number', 'null'], stated: ['1.5', 'x'], read: [1.5, 'x'] },
      { type: 'boolean', stated: ['true', 'false'], read: [true, false] },
      { type: ['string', 'null'], stated: [1, true, null], read: ['1', 'true', null] },
      { type: ['string', 'integer'], stated: ['1', 2], read: ['1', 2] },
    ];
    const of = (name: string, type: unknown, choices: unknown) => ({ name, schema: { type, enum: choices } });
    const parameters = cases.map(({ type, stated }) => ({ in: 'query', ...of(`${stated}`, type, stated) }));
    const { endpoints } = await outcome(api(get({ parameters })));
    const expected = cases.map(({ type, stated, read }) => of(`${stated}`, type, read));
    assert.deepEqual(endpoints[0]?.parameters, expected);
  });

  it('may have paths and servers of every kind', async () => {
    const odd = ['/a b/{ü}', '/{a}{b}/x', '/#f', '/../x', '/{', '/%zz', '/q?a=b', '/ok', '/o\\k', 'x-vendor'];
    odd.push('/{a/b}', '/\ud800');
    const paths = Object.fromEntries(odd.map((path) => [path, { get: { responses: {} } }]));
    const many = await outcome(api(paths));
    const taken = many.endpoints.map(({ path }) => path);
    assert.deepEqual(taken, ['/a%20b/{%C3%BC}', '/{a}{b}/x', '/%zz', '/q?a=b', '/ok', '/o%5Ck', '/%EF%BF%BD']);
    const urls = ['ftp://a.example', 'https://a.example/?q=1', '{x}', '', 'https://', 'http://[::1]/', 5];
    const hosts = [...urls, 'https://a.example/{version}'].map((url) => outcome(api(get({ servers: [{ url }] }))));
    const counts = (await Promise.all(hosts)).map(({ endpoints: { length } }) => length);
    assert.deepEqual(counts, [0, 0, 0, 0, 0, 1, 0, 0]);
  });

  it('may write a method in capitals', async () => {
    const { endpoints } = await outcome(api({ '/a': { POST: { responses: {} } } }));
    assert.deepEqual(endpoints, [{ name: 'post-a', path: '/a', method: 'POST', parameters: [] }]);
  });
});

it('two operations that are the same request become one endpoint', async (t) => {
  const item = { get: { responses: {} } };
  const cwd = await folderWith(t, { 'a.yaml': stringify(api({ '/a b': item, '/a%20b': item })) });
  const { stdout, stderr } = await runCli(t, ['import', 'a.yaml'], { cwd });
  assert.match(stdout, /- name: get-a-b\n {8}path: \/a%20b\n$/);
  assert.match(stderr, /^left out: GET \/a%20b: .* have the same endpoint ID: they are the same request\./);
});
