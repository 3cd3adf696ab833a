/** The command `import`: what a config has of an OpenAPI document, and what it says that it has not. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parse, stringify } from 'yaml';
import { folderWith, launch, PROGRAM, runCli } from '../cli/run.ts';
import { upstreamFor } from '../support/upstream.ts';

const price = {
  type: 'object',
  properties: { price: { type: 'number' }, at: { type: 'integer' }, name: { type: 'string' } },
};
const answer = {
  200: { description: 'ok', content: { 'application/json': { schema: { $ref: '#/components/schemas/Price' } } } },
};

/** What most documents have, once. */
const document = {
  openapi: '3.0.3',
  info: { title: 'Coin Prices', version: '1.2.3' },
  servers: [{ url: 'https://{region}.example.com/v1/', variables: { region: { default: 'eu', enum: ['eu', 'us'] } } }],
  security: [{ key: [] }],
  paths: {
    '/price/{symbol}': {
      parameters: [{ name: 'symbol', in: 'path', required: true, schema: { type: 'string' }, example: 'sk_live_1' }],
      get: {
        operationId: 'getPrice',
        summary: 'The price of one coin.',
        parameters: [
          { name: 'currency', in: 'query', schema: { type: 'string', enum: ['usd', 'eur'], default: 'usd' } },
          {
            name: 'depth',
            in: 'query',
            required: true,
            schema: { type: 'integer', minimum: 0, exclusiveMinimum: true },
          },
          { name: 'v', in: 'query', required: true, schema: { type: 'string', enum: ['2'] } },
          { name: 'ids', in: 'query', schema: { type: 'array', items: { type: 'integer' } } },
          { name: 'filter', in: 'query', schema: { type: 'object' } },
          {
            name: 'X-Trace',
            in: 'header',
            description: 'Say who asks, with token=abcdef1.',
            schema: { type: 'string' },
          },
          { name: 'Host', in: 'header', required: true, schema: { type: 'string' } },
        ],
        responses: answer,
      },
    },
    '/orders': {
      post: {
        security: [{ key: [], login: [] }],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: {
                type: 'object',
                required: ['coin'],
                properties: {
                  coin: { type: 'string', nullable: true, example: 'secret' },
                  legs: { type: 'array', items: { $ref: '#/components/schemas/Leg' } },
                },
              },
            },
          },
        },
        responses: { 204: { description: 'done' } },
      },
      head: { responses: {} },
    },
    '/chart.png': { get: { responses: { 200: { description: 'ok', content: { 'image/png': {} } } } } },
    '/photo': {
      put: { requestBody: { required: true, content: { 'multipart/form-data': {} } }, responses: answer },
    },
  },
  components: {
    schemas: {
      Price: price,
      Leg: { type: 'object', properties: { inner: { $ref: '#/components/schemas/Leg' }, size: { type: 'number' } } },
    },
    securitySchemes: {
      key: { type: 'apiKey', in: 'query', name: 'apikey', 'x-example': 'sk_live_2' },
      login: { type: 'http', scheme: 'bearer' },
    },
  },
};

const expected = `# Coin Prices, from its OpenAPI document. An endpoint signs the whole answer until it has an encoding:
# take one of those below it, or look for a value with \`signed-data-proxy try API/ENDPOINT -c FILE\`.
# Variables: CLIENT_KEY, UPSTREAM_COIN_PRICES_KEY, UPSTREAM_COIN_PRICES_LOGIN
version: '1.0'
apis:
  - name: coin-prices
    url: https://eu.example.com/v1
    headers:
      Authorization: Bearer \${UPSTREAM_COIN_PRICES_LOGIN}
    auth: { type: apiKey, keys: [ '\${CLIENT_KEY}' ] }
    endpoints:
      - name: getPrice
        description: The price of one coin
        path: /price/{symbol}
        parameters:
          - { name: currency, schema: { type: string, enum: [ usd, eur ] } }
          - { name: depth, required: true, schema: { type: integer, exclusiveMinimum: 0 } }
          - { name: v, fixed: '2' }
          - { name: ids, schema: { type: integer } }
          - { name: X-Trace, in: header, description: 'Say who asks, with …' }
          - { name: symbol, in: path, required: true }
          - { name: apikey, fixed: '\${UPSTREAM_COIN_PRICES_KEY}' }
        # encoding: { type: int256, path: $.price, times: '1e18' }
        # encoding: { type: int256, path: $.at }
      - name: post-orders
        path: /orders
        method: POST
        parameters:
          - { name: apikey, fixed: '\${UPSTREAM_COIN_PRICES_KEY}' }
          - { name: coin, in: body, required: true, schema: { type: [ string, 'null' ] } }
          - name: legs
            in: body
            schema: { type: array, items: { type: object, properties: { inner: {}, size: { type: number } } } }
`;

const leftOut = [
  'header parameter "Host": goes by itself (GET /price/{symbol})',
  'query parameter "currency": has a default, which the upstream applies by itself (GET /price/{symbol})',
  'query parameter "v": has one choice, and is fixed to it (GET /price/{symbol})',
  'query parameter "ids": is a list, of which one item can be sent (GET /price/{symbol})',
  'query parameter "filter": is an object, which only JSON can carry (GET /price/{symbol})',
  'body parameter "legs": is part of itself: its inner values may be anything (POST /orders)',
  'HEAD /orders: the method HEAD cannot be configured',
  'GET /chart.png: answers in image/png, not in JSON',
  'PUT /photo: takes a body in multipart/form-data, neither JSON nor a form',
];
const said = (lines: readonly string[], ...notes: string[]) =>
  [...lines.map((line) => `left out: ${line}\n`), ...notes.map((line) => `note: ${line}\n`)].join('');

const withFile = (t: TestContext, more: Readonly<Record<string, string>> = {}) =>
  folderWith(t, { 'api.json': JSON.stringify(document), 'api.yaml': stringify(document), ...more });

describe('import', () => {
  it('prints a config as somebody would have written it, and lists what it has not with the reasons', async (t) => {
    const cwd = await withFile(t);
    const run = await runCli(t, ['import', 'api.json'], { cwd });
    assert.deepEqual(run, { code: 0, signal: null, stdout: expected, stderr: said(leftOut, '2 endpoints') });
  });

  it('makes the same text of JSON and YAML, whatever the environment; config validate takes it', async (t) => {
    const cwd = await withFile(t);
    const env = { UPSTREAM_COIN_PRICES_KEY: 'secret', CLIENT_KEY: 'other' };
    const run = await runCli(t, ['import', 'api.yaml', '--out', 'c.yaml'], { cwd, env });
    assert.deepEqual([run.code, run.stdout], [0, '']);
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), expected);
    const { stdout } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.match(stdout, /^coin-prices\/getPrice 0x[0-9a-f]{64}\ncoin-prices\/post-orders 0x[0-9a-f]{64}\n$/);
  });

  it('suggests encodings that can be taken as they stand', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': expected.replace('# encoding', 'encoding') });
    assert.equal((await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd })).code, 0);
  });

  const swagger = {
    ...{
      swagger: '2.0',
      info: { title: 'Old', version: 1 },
      host: 'old.example',
      basePath: '/v2',
      schemes: ['http', 'https'],
    },
    produces: ['application/json'],
    securityDefinitions: {
      app: { type: 'oauth2', flow: 'application', tokenUrl: 'https://old.example/token', scopes: {} },
      user: { type: 'basic' },
    },
    security: [{ app: [] }],
    paths: {
      '/rates': {
        get: {
          parameters: [
            { name: 'from', in: 'query', type: 'string', required: true, pattern: '^[A-Z]{3}$' },
            { name: 'to', in: 'query', type: 'array', items: { type: 'string' }, collectionFormat: 'pipes' },
          ],
          responses: { 200: { description: '', schema: { type: 'array', items: { type: 'number' } } } },
        },
        post: { parameters: [{ name: 'file', in: 'formData', type: 'file', required: true }], responses: {} },
        put: {
          parameters: [{ name: 'body', in: 'body', schema: { properties: { rate: { type: 'number' } } } }],
          responses: {},
        },
      },
    },
  };

  it('reads Swagger 2.0', async (t) => {
    const cwd = await folderWith(t, { 'old.json': JSON.stringify(swagger) });
    const { stdout, stderr } = await runCli(t, ['import', 'old.json'], { cwd });
    assert.deepEqual(parse(stdout), {
      version: '1.0',
      apis: [
        {
          name: 'old',
          url: 'https://old.example/v2',
          oauth2: {
            tokenUrl: 'https://old.example/token',
            clientId: '$' + '{UPSTREAM_OLD_APP_CLIENT_ID}',
            clientSecret: '$' + '{UPSTREAM_OLD_APP_CLIENT_SECRET}',
          },
          auth: { type: 'apiKey', keys: ['$' + '{CLIENT_KEY}'] },
          endpoints: [
            {
              name: 'get-rates',
              path: '/rates',
              parameters: [
                { name: 'from', required: true, schema: { type: 'string', pattern: '^[A-Z]{3}$' } },
                { name: 'to' },
              ],
            },
            {
              name: 'put-rates',
              path: '/rates',
              method: 'PUT',
              parameters: [{ name: 'rate', in: 'body', schema: { type: 'number' } }],
            },
          ],
        },
      ],
    });
    assert.match(stdout, / # encoding: \{ type: int256, path: '\$\[0\]', times: '1e18' \}\n/);
    const list = 'query parameter "to": is a list, given as text with "|" between its items (GET /rates)';
    assert.equal(stderr, said([list, 'POST /rates: body parameter "file" is a file'], '2 endpoints'));
  });

  it('takes the operations that are wanted', async (t) => {
    const cwd = await withFile(t);
    const names = async (...args: string[]) => {
      const { stdout } = await runCli(t, ['import', 'api.json', ...args], { cwd });
      return [...stdout.matchAll(/^ {6}- name: (.*)$/gm)].map(([, name]) => name);
    };
    assert.deepEqual(await names('--only', 'get'), ['getPrice']);
    assert.deepEqual(await names('--only', 'GET, POST', '--include', '/ord*'), ['post-orders']);
    assert.deepEqual(await names('--include', 'getPrice', '--include', '/orders'), ['getPrice', 'post-orders']);
  });

  it('writes no file where there is no endpoint, and says why', async (t) => {
    const cwd = await withFile(t, {
      'none.json': JSON.stringify({ ...document, paths: {} }),
      'where.json': JSON.stringify({ ...document, servers: [{ url: '/v1' }] }),
      'not.json': '{"a":1}',
      'list.json': '[]',
      'page.html': '\n<!DOCTYPE html><title>Swagger UI</title>',
    });
    const failed = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCli(t, ['import', ...args, '--out', 'c.yaml'], { cwd });
      assert.deepEqual([code, stdout], [1, '']);
      return stderr.split('\n').at(-2);
    };
    assert.equal(await failed('none.json'), 'error: none.json: the document has no paths');
    const wanted = 'error: api.json: no operation of the document is wanted by --only and --include';
    assert.equal(await failed('api.json', '--include', '/nothing'), wanted);
    const misspelt = 'error: option --only <methods> takes methods such as GET,POST, not GTE; did you mean "GET"?';
    assert.equal(await failed('api.json', '--only', 'GTE'), misspelt);
    const reasons = 'error: where.json: no endpoint can be made of it, for the reasons above';
    assert.equal(await failed('where.json', '--only', 'GET'), reasons);
    const versions = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
    const none = `error: not.json: has neither "openapi" nor "swagger" with a version: ${versions}`;
    assert.equal(await failed('not.json'), none);
    assert.match((await failed('list.json')) ?? '', /list\.json: expected a mapping \(key: value\) at the top level$/);
    const page = /page\.html is a web page, or XML: give the JSON or YAML document that such a page shows$/;
    assert.match((await failed('page.html')) ?? '', page);
    assert.match((await failed('absent.json')) ?? '', /absent\.json: file not found$/);
    assert.deepEqual((await readdir(cwd)).includes('c.yaml'), false);
    const { stdout } = await runCli(t, ['import', 'where.json', '--only', 'GET', '--url', 'https://a.example/v1/'], {
      cwd,
    });
    assert.match(stdout, /^ {4}url: https:\/\/a\.example\/v1$/m);
  });

  it('is fetched, and its servers are relative to where it was', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/docs/api.json', { ...document, servers: [{ url: '../v1' }] });
    upstream.on('/moved', (_req, res) => void res.writeHead(302, { location: '/docs/api.json' }).end());
    const { stdout, stderr } = await runCli(t, ['import', `${upstream.url}/docs/api.json`, '--only', 'GET']);
    assert.match(stdout, new RegExp(`^ {4}url: ${upstream.url}/v1$`, 'm'));
    const host = upstream.url.replace('http://', '');
    assert.match(stderr, new RegExp(`^note: the server ${host} is this machine, or in a private network$`, 'm'));
    const moved = await runCli(t, ['import', `${upstream.url}/moved`]);
    const why = `status 302, which points to ${upstream.url}/docs/api.json: redirects are not followed`;
    assert.equal(moved.stderr, `error: ${upstream.url}/moved: the document cannot be fetched: ${why}\n`);
  });

  it('is told by its URL without user name, password and query, which may be secret', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.on('/page', (_req, res) => void res.end('<html>'));
    upstream.on('/text', (_req, res) => void res.end('[1]'));
    upstream.on('/empty', (_req, res) => void res.end('{"openapi":"3.1.0"}'));
    upstream.on(
      '/moved',
      (_req, res) => void res.writeHead(302, { location: '//u:pass%77ord@b.example/?k=hush' }).end(),
    );
    const sources = ['page', 'text', 'empty', 'moved', 'absent'].map((path) => `${upstream.url}/${path}?key=hush#hush`);
    const wrong = ['https://u:pass%77ord@a.example:1/x', 'https://u:pass%77ord@b c/', 'ftp://u:pass%77ord@a.example/x'];
    const told = [...sources, ...wrong].flatMap((source) => [[source], [source, '--json']]);
    for (const words of told) {
      const { code, stdout, stderr } = await runCli(t, ['import', ...words]);
      assert.equal(code, 1);
      assert.doesNotMatch(stdout + stderr, /pass%77ord|hush/);
    }
    const said = async (source: string) => (await runCli(t, ['import', source])).stderr;
    const user = 'GET https://a.example:1 failed: the URL must not contain a user name or password';
    assert.equal(await said(String(wrong[0])), `error: https://a.example:1/x: ${user}\n`);
    assert.equal(await said(String(wrong[1])), 'error: the document: GET failed: the URL is not valid\n');
    const moved = `${upstream.url}/moved: the document cannot be fetched: status 302, which points to http://b.example/`;
    assert.equal(await said(`${upstream.url}/moved`), `error: ${moved}: redirects are not followed\n`);
  });

  it('reads one document, and says how several become one', async (t) => {
    const parameters = [{ $ref: 'parts/more.yaml#/P' }];
    const paths = { '/a': { get: { responses: {} } }, '/b': { get: { parameters, responses: {} } } };
    const cwd = await withFile(t, { 'parts.json': JSON.stringify({ ...document, paths }) });
    const { stderr } = await runCli(t, ['import', 'parts.json'], { cwd });
    const why = 'GET /b: refers to another document: bundle them, such as with npx @redocly/cli bundle';
    assert.equal(stderr, said([why], '1 endpoint'));
  });
});

const OTHER_CONFIG = `version: '1.0'
apis:
  - name: other
    url: https://other.example
    auth: { type: free }
    endpoints:
      - { name: e, path: /e }
`;

describe('the file that import writes', () => {
  const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';
  it('is whole, or is not there: of a disk that is full no half of a config is left', { skip }, async (t) => {
    const cwd = await withFile(t);
    const program = [process.execPath, PROGRAM, 'import', 'api.json', '--out'];
    const full = async (...args: string[]) => {
      const { code, stderr } = await launch(t, 'prlimit', ['--fsize=512:unlimited', ...program, ...args], { cwd })
        .ended;
      assert.equal(code, 1);
      assert.match(stderr, /\nerror: .*\/c\.yaml cannot be written: EFBIG\n$/);
      return (await readdir(cwd)).sort();
    };
    assert.deepEqual(await full('c.yaml'), ['api.json', 'api.yaml']);
    await writeFile(join(cwd, 'c.yaml'), OTHER_CONFIG);
    assert.deepEqual(await full('c.yaml', '--merge'), ['api.json', 'api.yaml', 'c.yaml']);
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), OTHER_CONFIG);
  });

  it('takes the place of none, and is reached by no link', async (t) => {
    const cwd = await withFile(t, { 'c.yaml': 'mine' });
    await symlink('elsewhere.yaml', join(cwd, 'link.yaml'));
    const run = async (...args: string[]) => (await runCli(t, ['import', 'api.json', ...args], { cwd })).stderr;
    const there = 'error: c.yaml is there: add what it lacks with --merge, or name another file\n';
    assert.equal(await run('--out', 'c.yaml'), there);
    const link = 'error: link.yaml is a symbolic link: name the file that it leads to\n';
    assert.equal(await run('--out', 'link.yaml'), link);
    assert.equal(await run('--out', 'link.yaml', '--merge'), link);
    assert.equal(await run('--merge'), 'error: option --merge needs --out <file>, the config to add to\n');
    assert.match(await run('--out', 'absent/c.yaml'), /\nerror: .*absent\/c\.yaml cannot be written: ENOENT\n$/);
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), 'mine');
    assert.deepEqual((await readdir(cwd)).sort(), ['api.json', 'api.yaml', 'c.yaml', 'link.yaml']);
  });

  it('is not written to a folder that cannot be written to', async (t) => {
    const cwd = await withFile(t);
    await chmod(cwd, 0o555);
    // Modes do not stop the superuser, but what is no real file system does.
    const folder = process.getuid?.() === 0 ? '/sys' : cwd;
    const { stderr } = await runCli(t, ['import', 'api.json', '--out', `${folder}/c.yaml`], { cwd });
    assert.match(stderr, /\nerror: .*c\.yaml cannot be written: (?:EACCES|EROFS|EPERM)\n$/);
    await chmod(cwd, 0o755);
  });

  it('keeps with --merge what its operator has written, and gets what it lacks', async (t) => {
    const own = `# ours
version: "1.0"
settings: {maxConcurrentApiCalls: 5}   # few
server:
  port: 0x0fA0
  rateLimit: { window: 1e3, max: +0070 }
apis:
- name: renamed # by us
  url: https://eu.example.com/v1/
  auth: {type: free}
  endpoints:
    - name:   eth
      path: /price/{symbol}
      parameters: [ {name: symbol, in: path, fixed: ETH} ]
      encoding: { type: int256, path: $.price, times: '1e8' }
      # encoding: { type: int256, path: $.at }

# the end
`;
    const cwd = await withFile(t, { 'c.yaml': own });
    await chmod(join(cwd, 'c.yaml'), 0o640);
    // Nobody but root may give a file away.
    if (process.getuid?.() === 0) await chown(join(cwd, 'c.yaml'), 4321, 4322);
    const { uid, gid } = await stat(join(cwd, 'c.yaml'));
    const { stderr } = await runCli(t, ['import', 'api.json', '--out', 'c.yaml', '--merge'], { cwd });
    const kept = 'the API renamed has no header Authorization, which the document asks for';
    assert.equal(stderr, said(leftOut, kept, '1 endpoint'));
    const text = await readFile(join(cwd, 'c.yaml'), 'utf8');
    const added = expected.slice(expected.indexOf('      - name: post-orders'));
    const [head = '', apis = ''] = own.split('apis:\n');
    // Values and comments are what they were, in the layout of the YAML library.
    const laidOut = `${head}apis:\n${apis.replace(/^(?=.)/gm, '  ')}`
      .replace('{maxConcurrentApiCalls: 5}   #', '{ maxConcurrentApiCalls: 5 } #')
      .replace('name:   eth', 'name: eth')
      .replace('{type: free}', '{ type: free }')
      .replace('{name: symbol, in: path, fixed: ETH}', '{ name: symbol, in: path, fixed: ETH }')
      .replace('  # the end\n', '        # the end\n');
    assert.equal(text, laidOut + added);
    const after = await stat(join(cwd, 'c.yaml'));
    assert.deepEqual([after.mode & 0o777, after.uid, after.gid], [0o640, uid, gid]);
    const again = await runCli(t, ['import', 'api.json', '--out', 'c.yaml', '--merge'], { cwd });
    assert.equal(again.stderr, said(leftOut, kept, '0 endpoints'));
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), text);
  });

  it('is merged with a word on each endpoint that the document does not have, chosen or not', async (t) => {
    const symbol = { name: 'symbol', in: 'path', fixed: 'ETH' };
    const endpoints = [
      { name: 'eth', path: '/price/{symbol}?fresh=1', parameters: [symbol] },
      { name: 'old', path: '/old', method: 'POST' },
      { name: 'orders', path: '/orders', method: 'POST' },
    ];
    const auth = { type: 'free' };
    const apis = [
      { name: 'mine', url: 'https://eu.example.com/v1', auth, headers: { Authorization: 'a' }, endpoints },
      { name: 'other', url: 'https://other.example', auth, endpoints },
    ];
    const cwd = await withFile(t, { 'c.yaml': stringify({ version: '1.0', apis }, { aliasDuplicateObjects: false }) });
    const args = ['import', 'api.json', '--out', 'c.yaml', '--merge', '--only', 'GET'];
    const { stderr } = await runCli(t, args, { cwd });
    assert.deepEqual(
      stderr.split('\n').filter((line) => line.includes('is not in the document')),
      ['note: mine/old (POST /old) is not in the document, and stays'],
    );
  });

  it('is not merged where another API has the name, or where there is no place', async (t) => {
    const api = (rest: string) =>
      `version: '1.0'\napis:\n  - name: coin-prices\n    auth: { type: free }\n    ${rest}\n`;
    const cwd = await withFile(t, {
      'other.yaml': api('url: https://other.example\n    endpoints:\n      - { name: a, path: /a }'),
      'flow.yaml': api('url: https://eu.example.com/v1\n    endpoints: [{ name: a, path: /a }]'),
      'alias.yaml': `${api('url: https://eu.example.com/v1\n    endpoints: *list')}`.replace(
        'version:',
        'x: &list [{ name: a, path: /a }]\nversion:',
      ),
      'broken.yaml': 'version: [',
    });
    const run = async (file: string) =>
      (await runCli(t, ['import', 'api.json', '--out', file, '--merge'], { cwd })).stderr.split('\n').at(-2);
    const name =
      'error: other.yaml: the API coin-prices has another URL than https://eu.example.com/v1: give it with --url where it is the same API';
    assert.equal(await run('other.yaml'), name);
    const place = 'error: alias.yaml: the endpoints of coin-prices cannot be added to: write them as a list there';
    assert.equal(await run('alias.yaml'), place);
    assert.equal(await run('flow.yaml'), 'note: 2 endpoints');
    assert.match((await run('broken.yaml')) ?? '', /^error: .*broken\.yaml:/);
  });
});
