/** What `import` makes of documents as vendors write them: what clients give is asked for, and the answer can be read. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const json = (schema: object = {}) => ({ content: { 'application/json': { schema } } });
const ok = { responses: { 200: { description: 'ok', ...json() } } };
const api = (paths: object, more: object = {}) => ({
  ...{ openapi: '3.0.0', info: { title: 'T', version: '1' }, servers: [{ url: 'https://t.example' }], paths },
  ...more,
});
const get = (...parameters: object[]) => api({ '/a': { get: { operationId: 'a', parameters, ...ok } } });
const query = (name: string, schema: object = { type: 'string' }, more: object = {}) => ({
  ...{ name, in: 'query', schema },
  ...more,
});

/** The endpoints of a document, and the lines of what was left out or chosen. */
async function outcome(t: TestContext, document: object | string, ...args: string[]) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const cwd = await folderWith(t, { 'a.yaml': text });
  const { stdout, stderr } = await runCli(t, ['import', 'a.yaml', ...args], { cwd });
  const apis = stdout === '' ? [] : parse(stdout).apis;
  const lines = stderr.split('\n').filter((line) => line.startsWith('left out: '));
  return {
    apis,
    endpoints: apis.flatMap((each: { endpoints: object[] }) => each.endpoints),
    parameters: apis[0]?.endpoints[0].parameters,
    said: lines.map((line) => line.slice('left out: '.length)),
    last: stderr.trim().split('\n').at(-1),
  };
}

/** Serves what was imported, and gives what the upstream gets of a client's parameters. */
async function asked(t: TestContext, document: object, parameters: object) {
  const upstream = await upstreamFor(t);
  upstream.on('*', (_req, res) => void res.end('{}'));
  const { apis } = await outcome(t, document, '--url', upstream.url);
  const service = await serviceFor(t, { apis }, { env: { CLIENT_KEY: 'key' } });
  const response = await service.post('t/a', parameters, { 'X-Api-Key': 'key' });
  assert.equal(response.status, 200);
  const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = upstream.requests;
  return { path, accept: headers.accept, type: headers['content-type'], body };
}

describe('of texts', () => {
  it('a description ends with its first sentence, not with an abbreviation', async (t) => {
    const texts: [string, string][] = [
      ['Symbols to ask for, ie. BTC or ETH. Others are ignored.', 'Symbols to ask for, ie. BTC or ETH'],
      ['The trading pair, e.g. BTC-USD. Default all.', 'The trading pair, e.g. BTC-USD'],
      ['The pair (i.e. Bitcoin, eg. BTC). More.', 'The pair (i.e. Bitcoin, eg. BTC)'],
      ['Price in U.S. Dollars vs. Euro, approx. 5 s late. More.', 'Price in U.S. Dollars vs. Euro, approx. 5 s late'],
      ['Coins, tokens, etc. The answer is sorted.', 'Coins, tokens, etc'],
      ['Say whether, yes or no. Then go on.', 'Say whether, yes or no'],
      ['At most, max. 100 items. More.', 'At most, max. 100 items'],
      ['Preis in Euro, z.B. 12. Der Rest.', 'Preis in Euro, z.B. 12'],
    ];
    const { parameters } = await outcome(
      t,
      get(...texts.map(([description], i) => query(`p${i}`, undefined, { description }))),
    );
    assert.deepEqual(
      parameters.map(({ description }: { description: string }) => description),
      texts.map(([, short]) => short),
    );
  });
});

describe('of versions and parts', () => {
  it('reads OpenAPI 3.2, and a version as a number or in short', async (t) => {
    const versions = ['3.2.0', '3.2', 3.2, '3.1', 3.1, 3, '3.0', '3.1.1'];
    for (const openapi of versions) {
      const { endpoints } = await outcome(t, { ...get(query('b')), openapi });
      assert.deepEqual(endpoints, [{ name: 'a', path: '/a', parameters: [{ name: 'b' }] }], String(openapi));
    }
    const old = await outcome(t, { swagger: 2, info: {}, host: 't.example', paths: { '/a': { get: {} } } });
    assert.equal(old.endpoints.length, 1);
    const why = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
    assert.equal((await outcome(t, { swagger: '1.2' })).last, `error: a.yaml: Swagger 1.2: ${why}`);
    assert.equal((await outcome(t, { openapi: 4 })).last, `error: a.yaml: OpenAPI 4: ${why}`);
  });

  it('says what is new in OpenAPI 3.2 and in no config', async (t) => {
    const media = { content: { 'application/json': { $ref: '#/components/mediaTypes/M' } } };
    const parameters = [{ name: 'q', in: 'querystring', content: { 'application/json': {} } }];
    const paths = {
      '/a': { additionalOperations: { COPY: ok }, query: ok, post: { requestBody: media, ...ok } },
      '/b': { get: { parameters, ...ok } },
    };
    const components = { mediaTypes: { M: { schema: { properties: { n: { type: 'integer' } } } } } };
    const { endpoints, said } = await outcome(t, { ...api(paths, { components }), openapi: '3.2.0' });
    assert.deepEqual(endpoints, [
      {
        name: 'post-a',
        path: '/a',
        method: 'POST',
        parameters: [{ name: 'n', in: 'body', schema: { type: 'integer' } }],
      },
      { name: 'get-b', path: '/b' },
    ]);
    assert.deepEqual(said, [
      'QUERY /a: the method QUERY cannot be configured',
      'COPY /a: the method COPY cannot be configured',
      'querystring parameter "q": is a whole query string, which no config has (GET /b)',
    ]);
  });

  it('merges what the key << names', async (t) => {
    const text = `openapi: 3.0.0
info: { title: T, version: '1' }
servers: [{ url: 'https://t.example' }]
x-base: &base { in: query, required: true }
x-more: &more { <<: *base, required: false, schema: { type: integer } }
paths:
  /a:
    get:
      parameters:
        - { <<: *base, name: b }
        - { <<: [*more, *base], name: c }
        - { name: d, <<: *more, schema: { type: boolean } }
      responses: {}
`;
    const { parameters } = await outcome(t, text);
    assert.deepEqual(parameters, [
      { name: 'b', required: true },
      { name: 'c', schema: { type: 'integer' } },
      { name: 'd', schema: { type: 'boolean' } },
    ]);
    const { last } = await outcome(t, text.replace('{ <<: *base, name: b }', '{ <<: base, name: b }'));
    assert.equal(last, 'error: a.yaml: the key "<<" must name a mapping, or a list of mappings');
  });

  it('loses none of the documents that it refers to, and says where they are too many', async (t) => {
    const cwd = await folderWith(t, {});
    await mkdir(join(cwd, 'parts'));
    for (let i = 0; i <= 1000; i++) await writeFile(join(cwd, `parts/${i}.json`), JSON.stringify(query(`p${i}`)));
    const of = (ref: string) => ({ get: { parameters: [{ $ref: ref }], ...ok } });
    const imported = async (count: number) => {
      const absent = { '/absent': of('./parts/no.json'), '/other': of('../x.json') };
      const paths = Array.from({ length: count }, (_, i) => [`/${i}`, of(`./parts/${i}.json`)]);
      await writeFile(join(cwd, 'a.json'), JSON.stringify(api({ ...absent, ...Object.fromEntries(paths) })));
      return runCli(t, ['import', 'a.json', '--refs'], { cwd });
    };
    const { stdout, stderr } = await imported(1000);
    assert.deepEqual(stderr.split('\n'), [
      'left out: GET /absent: refers to another document, which could not be read',
      'left out: GET /other: refers to another document, which could not be read',
      'note: 1000 endpoints',
      '',
    ]);
    for (let i = 0; i < 1000; i++) assert.ok(stdout.includes(`- { name: p${i} }`));
    const tooMany = await imported(1001);
    const why = 'error: a.json: refers to more than 1000 documents, or 64 MiB of them\n';
    assert.deepEqual([tooMany.code, tooMany.stderr], [1, why]);
  });
});
