/** What `import` makes of documents as vendors write them: what clients give is asked for, and the answer can be read. */
import assert from 'node:assert/strict';
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

describe('of defaults', () => {
  const list = query('ids', { type: 'string', default: 'bitcoin' });

  it('none is written: the upstream applies its own where a client sends nothing', async (t) => {
    const { path } = await asked(t, get(list, query('symbols')), { symbols: 'eth' });
    assert.equal(path, '/a?symbols=eth');
    const { parameters, said } = await outcome(t, get(list, query('n', { type: 'integer', default: 0 })));
    assert.deepEqual(parameters, [{ name: 'ids' }, { name: 'n', schema: { type: 'integer' } }]);
    assert.deepEqual(said, [
      'query parameter "ids": has a default, which the upstream applies by itself (GET /a)',
      'query parameter "n": has a default, which the upstream applies by itself (GET /a)',
    ]);
  });

  it('nor in a body, a header, a cookie, or of Swagger 2.0', async (t) => {
    const schema = { type: 'string', default: 'bitcoin' };
    const body = { requestBody: json({ type: 'object', properties: { ids: schema, symbols: { type: 'string' } } }) };
    const parameters = ['header', 'cookie'].map((place) => ({ name: `in-${place}`, in: place, schema }));
    const post = api({ '/a': { post: { operationId: 'a', parameters, ...body, ...ok } } });
    const { path, body: sent } = await asked(t, post, { symbols: 'eth' });
    assert.deepEqual([path, sent], ['/a', '{"symbols":"eth"}']);
    const old = { swagger: '2.0', info: { title: 'T', version: '1' }, host: 't.example' };
    const flat = [{ name: 'ids', in: 'query', ...schema }];
    const made = await outcome(t, { ...old, paths: { '/a': { get: { parameters: flat, responses: {} } } } });
    assert.deepEqual(made.parameters, [{ name: 'ids' }]);
  });
});

describe('of formats', () => {
  it('JSON is fixed where it is one of the values', async (t) => {
    const type = query('file_type', { type: 'string', enum: ['xml', 'json'], default: 'xml' });
    assert.equal((await asked(t, get(type), { file_type: 'xml' })).path, '/a?file_type=json');
    const { parameters, said } = await outcome(t, get(type));
    assert.deepEqual(parameters, [{ name: 'file_type', fixed: 'json' }]);
    assert.deepEqual(said, [
      'query parameter "file_type": chooses the format of the answer, and is fixed to json (GET /a)',
    ]);
  });

  it('by any name, in any spelling, at any place', async (t) => {
    const values: [string, unknown[], string][] = [
      ['format', ['CSV', 'JSON'], 'JSON'],
      ['outputFormat', ['application/xml', 'application/json'], 'application/json'],
      ['alt', ['media', 'proto', 'json'], 'json'],
      ['wt', ['xml', 'json'], 'json'],
      ['$format', ['atom', 'json'], 'json'],
      ['_ext', ['.xml', '.json'], '.json'],
      ['fmt', ['xml', 'jsonv2', 'json', 'geojson'], 'json'],
    ];
    const { parameters } = await outcome(t, get(...values.map(([name, list]) => query(name, { enum: list }))));
    assert.deepEqual(
      parameters,
      values.map(([name, , fixed]) => ({ name, fixed })),
    );
    const schemas = { Format: { type: 'string', enum: ['xml', 'json'] } };
    const schema = { default: 'xml', allOf: [{ $ref: '#/components/schemas/Format' }] };
    const path = { '/a.{format}': { get: { parameters: [{ name: 'format', in: 'path', schema }], ...ok } } };
    const made = await outcome(t, api(path, { components: { schemas } }));
    assert.deepEqual(made.parameters, [{ name: 'format', in: 'path', fixed: 'json' }]);
    const body = { requestBody: json({ properties: { output_format: schemas.Format } }) };
    const post = await outcome(t, api({ '/a': { post: { ...body, ...ok } } }));
    assert.deepEqual(post.parameters, [{ name: 'output_format', in: 'body', fixed: 'json' }]);
  });

  it('what filters by a format, gives one, or has another choice stays free', async (t) => {
    const free = [
      query('content_type', { enum: ['csv', 'json'] }, { description: 'Filter by the type of the file.' }),
      query('input_format', { enum: ['csv', 'json'] }),
      query('method', { enum: ['POST', 'JSON', 'GET'] }),
      query('format', { enum: ['jsonp', 'ndjson', 'xml'] }),
    ];
    const { parameters, said } = await outcome(t, get(...free));
    assert.deepEqual(
      parameters.map(({ fixed, schema }: { fixed: unknown; schema: unknown }) => [fixed, schema]),
      free.map(({ schema }) => [undefined, schema]),
    );
    assert.deepEqual(said, []);
    // In a body it may be the format of what is stored.
    const properties = { content_type: { enum: ['csv', 'json'] }, format: { enum: ['PARQUET', 'JSON'] } };
    const body = { requestBody: json({ properties }) };
    const hook = await outcome(t, api({ '/a': { post: { ...body, ...ok } } }));
    assert.deepEqual(
      hook.parameters,
      Object.entries(properties).map(([name, schema]) => ({ name, in: 'body', schema })),
    );
  });
});

describe('of media types', () => {
  const vendor = 'application/vnd.example.v2+json';
  const of = (answer: string[], more: object = {}, method = 'get') => {
    const content = Object.fromEntries(answer.map((type) => [type, { schema: {} }]));
    return api({ '/a': { [method]: { operationId: 'a', responses: { 200: { content } }, ...more } } });
  };
  const header = (name: string, schema: object = { type: 'string' }, required = true) => ({
    parameters: [{ name, in: 'header', required, schema }],
  });
  const accepted = async (t: TestContext, document: object) => (await asked(t, document, {})).accept;

  it('a vendor’s JSON is asked for where there is no other', async (t) => {
    assert.equal(await accepted(t, of([vendor], header('Accept'))), vendor);
    assert.equal(await accepted(t, of(['application/xml', vendor])), vendor);
    assert.equal(await accepted(t, of(['application/json; version=2'])), 'application/json; version=2');
    assert.equal(await accepted(t, of([vendor, 'application/json; charset=utf-8'])), 'application/json');
    assert.equal(await accepted(t, of(['*/*'])), 'application/json');
    const { parameters, said } = await outcome(t, of([vendor]));
    assert.deepEqual(parameters, [{ name: 'Accept', in: 'header', fixed: vendor }]);
    assert.deepEqual(said, [`header "Accept": is fixed to ${vendor} (GET /a)`]);
  });

  it('what a header parameter says of itself goes by itself', async (t) => {
    const own = await outcome(t, of(['application/json'], header('Accept', { default: 'text/csv' })));
    assert.deepEqual([own.parameters, own.said], [undefined, ['header parameter "Accept": goes by itself (GET /a)']]);
  });

  it('a body is sent as the JSON that is taken', async (t) => {
    const schema = { properties: { n: { type: 'integer' } } };
    const body = (...types: string[]) => ({
      requestBody: { content: Object.fromEntries(types.map((type) => [type, { schema }])) },
    });
    const sent = async (...types: string[]) => (await asked(t, of([], body(...types), 'patch'), { n: 1 })).type;
    assert.equal(await sent(vendor), vendor);
    assert.equal(await sent('text/plain', 'application/merge-patch+json'), 'application/merge-patch+json');
    assert.equal(await sent(vendor, 'application/json'), 'application/json');
    const old = { swagger: '2.0', info: { title: 'T', version: '1' }, consumes: [vendor], produces: [vendor] };
    const parameters = [{ name: 'body', in: 'body', schema }];
    const paths = { '/a': { post: { operationId: 'a', parameters, responses: {} } } };
    const request = await asked(t, { ...old, paths }, { n: 1 });
    assert.deepEqual([request.accept, request.type, request.body], [vendor, vendor, '{"n":1}']);
  });
});

describe('of credentials', () => {
  it('a path parameter, a filter and what is no text are none', async (t) => {
    const path = { name: 'app_id', in: 'path', required: true, schema: { type: 'string' } };
    const parameters = [
      path,
      query('app_id', { type: 'integer' }),
      query('appId'),
      query('subscription_key', { type: 'string' }, { description: 'filter only subscriptions matching key' }),
      query('auth', { type: 'boolean' }),
      query('secret', { enum: ['yes', 'no'] }),
    ];
    const { parameters: made, said } = await outcome(
      t,
      api({ '/apps/{app_id}': { get: { parameters, ...ok } }, '/{api_key}': { get: { ...ok } } }),
    );
    assert.deepEqual(made[0], { name: 'app_id', in: 'path', required: true });
    assert.deepEqual(
      made.map(({ fixed }: { fixed: unknown }) => fixed),
      Array.from(parameters, () => undefined),
    );
    assert.deepEqual(said, []);
  });

  it('what is named so is a variable', async (t) => {
    const { parameters } = await outcome(t, get(query('app_id'), query('app_key'), query('password')));
    const variable = (name: string) => ['$', `{UPSTREAM_T_${name}}`].join('');
    assert.deepEqual(parameters, [
      { name: 'app_id' },
      { name: 'app_key', fixed: variable('APP_KEY') },
      { name: 'password', fixed: variable('PASSWORD') },
    ]);
  });

  it('beside a security scheme an optional one is left out, and a word such as "secret" is what clients ask for', async (t) => {
    const more = {
      components: {
        securitySchemes: { login: { type: 'http', scheme: 'bearer' }, key: { type: 'apiKey', in: 'query', name: 'k' } },
      },
      security: [{ login: [], key: [] }],
    };
    const authorization = { name: 'authorization', in: 'header', required: true, schema: { type: 'string' } };
    const parameters = [
      query('access_token'),
      query('secret'),
      authorization,
      { ...query('k'), in: 'path' },
      query('k'),
    ];
    const { apis, said } = await outcome(t, api({ '/a/{k}': { get: { parameters, ...ok } } }, more));
    assert.deepEqual(apis[0].headers, { Authorization: 'Bearer $' + '{UPSTREAM_T_LOGIN}' });
    assert.deepEqual(apis[0].endpoints[0].parameters, [
      { name: 'secret' },
      { name: 'k', in: 'path', required: true },
      { name: 'k', fixed: '$' + '{UPSTREAM_T_KEY}' },
    ]);
    assert.deepEqual(said, [
      'query parameter "access_token": is another credential beside its security (GET /a/{k})',
      'header parameter "authorization": is sent as its security says (GET /a/{k})',
      'query parameter "k": is sent as its security says (GET /a/{k})',
    ]);
  });
});

it('of several ways in, the first that a config can have is taken, with a word', async (t) => {
  const securitySchemes = { odd: { type: 'mutualTLS' }, key: { type: 'apiKey', in: 'header', name: 'X-Key' } };
  const more = { components: { securitySchemes }, security: [{ odd: [] }, { key: [] }] };
  const { apis, said } = await outcome(t, api({ '/a': { get: ok } }, more));
  assert.deepEqual(apis[0].headers, { 'X-Key': '$' + '{UPSTREAM_T_KEY}' });
  assert.deepEqual(said, ['its security: has several ways, of which the first possible one is taken (GET /a)']);
});

describe('of bodies', () => {
  it('members that are read-only are left out, however that is said', async (t) => {
    const schemas = { Id: { type: 'integer', readOnly: true } };
    const id = { $ref: '#/components/schemas/Id' };
    const line = { required: ['no', 'n'], properties: { no: id, n: { type: 'integer' } } };
    const schema = {
      required: ['id', 'made', 'n'],
      allOf: [{ properties: { id, made: { allOf: [id] } } }],
      properties: {
        seen: { $ref: '#/components/schemas/Text', readOnly: true },
        lines: { type: 'array', items: line },
        n: { type: 'number' },
      },
    };
    const components = { schemas: { ...schemas, Text: { type: 'string' } } };
    const paths = { '/a': { post: { operationId: 'a', requestBody: json(schema), ...ok } } };
    const { parameters, said } = await outcome(t, api(paths, { components }));
    const items = { properties: { n: { type: 'integer' } }, required: ['n'] };
    assert.deepEqual(parameters, [
      { name: 'lines', in: 'body', schema: { type: 'array', items } },
      { name: 'n', in: 'body', required: true, schema: { type: 'number' } },
    ]);
    assert.deepEqual(said, [
      'body parameter "seen": is read-only, and left out (POST /a)',
      'body parameter "lines": has members that are read-only, which are left out (POST /a)',
      'body parameter "id": is read-only, and left out (POST /a)',
      'body parameter "made": is read-only, and left out (POST /a)',
    ]);
    assert.equal((await asked(t, api(paths, { components }), { n: 1 })).body, '{"n":1}');
  });

  it('forms are sent as such', async (t) => {
    const fields = {
      symbol: { type: 'string', pattern: '^[A-Z]+$' },
      list: { type: 'array', items: { enum: ['a', 'b'] } },
      deep: { type: 'object', properties: { a: {} } },
    };
    const schema = { required: ['symbol'], properties: fields };
    const requestBody = { content: { 'application/x-www-form-urlencoded': { schema } } };
    const form = api({ '/a': { post: { operationId: 'a', requestBody, ...ok } } });
    const made = await outcome(t, form);
    assert.equal(made.endpoints[0].bodyType, 'form');
    assert.deepEqual(made.parameters, [
      { name: 'symbol', in: 'body', required: true, schema: { type: 'string', pattern: '^[A-Z]+$' } },
      { name: 'list', in: 'body', schema: { enum: ['a', 'b'] } },
    ]);
    assert.deepEqual(made.said, [
      'body parameter "list": is a list, of which one item can be sent (POST /a)',
      'body parameter "deep": is an object, which only JSON can carry (POST /a)',
    ]);
    const sent = { type: 'application/x-www-form-urlencoded', body: 'symbol=ETH&list=a' };
    const { type, body } = await asked(t, form, { symbol: 'ETH', list: 'a' });
    assert.deepEqual({ type, body }, sent);
    const old = { swagger: '2.0', info: { title: 'T', version: '1' }, host: 't.example' };
    const field = [{ name: 'symbol', in: 'formData', type: 'string', required: true }];
    const post = { operationId: 'a', parameters: field, responses: {} };
    const swagger = await outcome(t, { ...old, paths: { '/a': { post } } });
    assert.deepEqual(swagger.endpoints, [
      {
        name: 'a',
        path: '/a',
        method: 'POST',
        bodyType: 'form',
        parameters: [{ name: 'symbol', in: 'body', required: true }],
      },
    ]);
  });

  it('without the only one that it takes, an operation is left out', async (t) => {
    const form = { requestBody: { content: { 'application/x-www-form-urlencoded': {} } } };
    const free = { requestBody: json({ type: 'object' }) };
    const parts = { requestBody: json({ allOf: [{ oneOf: [{ properties: { a: {} } }] }] }) };
    const paths = {
      '/form': { post: { ...form, ...ok } },
      '/free': { put: { ...free, ...ok } },
    };
    const { endpoints, said } = await outcome(t, api({ ...paths, '/parts': { patch: { ...parts, ...ok } } }));
    assert.deepEqual(endpoints, []);
    assert.deepEqual(said, [
      'POST /form: takes a body that is no object with known members',
      'PUT /free: takes a body that is no object with known members',
      'PATCH /parts: takes a body that is no object with known members',
    ]);
  });
});

describe('of texts', () => {
  it('a description is one line of at most 100 characters, without what looks like a secret', async (t) => {
    const long = 'The trading pair, e.g. BTC-USD. '.repeat(10);
    const texts: [string, string][] = [
      ['Symbols to ask for,\n<b>ie.</b> BTC.', 'Symbols to ask for, ie. BTC'],
      [long, `${long.slice(0, 99)}…`],
      ['x'.repeat(200), `${'x'.repeat(99)}…`],
      ['As in key=abcdef12345 only', 'As in … only'],
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
  it('texts that YAML takes for numbers are kept as they are written', async (t) => {
    const schema = 'schema: { type: string, enum: [1.0, 1.10] }';
    const text = `openapi: 3.0.0\ninfo: { title: T, version: 1.0 }\nservers: [{ url: 'https://t.example' }]
paths: { /a: { get: { parameters: [{ name: v, in: query, ${schema} }], responses: {} } } }\n`;
    const { parameters } = await outcome(t, text);
    assert.deepEqual(parameters, [{ name: 'v', schema: { type: 'string', enum: ['1.0', '1.10'] } }]);
  });

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
    const { said } = await outcome(t, text.replace('{ <<: *base, name: b }', '{ <<: base, name: b }'));
    assert.deepEqual(said, ['a parameter: has no "name" or no "in" (GET /a)']);
  });
});
