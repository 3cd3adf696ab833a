/** Documents of strangers: whatever is in them, the config that is made of them is one that the service takes, or there is none. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { parse, stringify } from 'yaml';
import { importDocument } from '../../cli/import/index.ts';
import { merge } from '../../cli/import/merge.ts';
import { nameOf, unique, variableOf } from '../../cli/import/names.ts';
import { readDocument } from '../../cli/import/read.ts';
import { fileText } from '../../cli/import/write.ts';
import { ConfigErrors, loadConfig } from '../../config/index.ts';
import { parseConfig, type Tree } from '../../config/yaml.ts';
import { definitions } from '../../service/index.ts';
import { folderWith, runCli } from '../cli/run.ts';
import { anyCharacter } from '../support/any-character.ts';

const builtins = definitions();
const wants = () => true;
const imported = (tree: Tree) => importDocument(tree, { wants, builtins });

const api = (paths: object, more: object = {}) => ({
  ...{ openapi: '3.0.0', info: { title: 'T', version: '1' }, servers: [{ url: 'https://t.example' }], paths },
  ...more,
});
const json = (schema: unknown) => ({ content: { 'application/json': { schema } } });
const get = (operation: object) => ({ '/a': { get: { responses: {}, ...operation } } });

/** Loads what was made, and what it is with the suggestion that comes last in force. */
async function loaded(text: string) {
  const file = '/config.yaml';
  const loadText = (each: string) =>
    loadConfig({ file, tree: parseConfig(each, file), env: { HOME: 'leak' }, builtins, allowUnset: true });
  const last = text.lastIndexOf('        # encoding: ');
  if (last > 0) await loadText(`${text.slice(0, last)}        encoding: ${text.slice(last + 20)}`);
  return loadText(text);
}

/** What is left out, and the endpoints. */
async function outcome(tree: Tree) {
  const made = await imported(tree);
  if (made.apis.length > 0) await loaded(fileText(made));
  const endpoints = made.apis.flatMap(({ endpoints }) => endpoints);
  return { endpoints, reasons: made.leftOut.map(({ what = '', reason }) => `${what}: ${reason}`) };
}

describe('a hostile document', () => {
  it('prints nothing that a terminal obeys, and means the same', async (t) => {
    const evil = '\u009b2J\u202e\u2028';
    const parameter = { name: `a${evil}`, in: 'query', schema: { enum: [`x${evil}`, 'b'], [evil]: 1 } };
    const cwd = await folderWith(t, { 'a.json': JSON.stringify(api(get({ parameters: [parameter] }))) });
    const { stdout } = await runCli(t, ['import', 'a.json'], { cwd });
    assert.match(stdout, /^ {10}- \{ name: "a\\u009b2J\\u202e\\u2028", .*"x\\u009b2J\\u202e\\u2028"/m);
    assert.equal(parse(stdout).apis[0].endpoints[0].parameters[0].name, `a${evil}`);
  });

  it('names no variable of the operator, in no text', async () => {
    const home = '$' + '{HOME}';
    const evil = `${home} $${'{SERVICE_MNEMONIC}'} $${home}`;
    const tree = api(
      {
        '/': { servers: [{ url: `https://t.example/${home}` }], get: {} },
        '/${HOME}': {
          get: {
            operationId: evil,
            summary: evil,
            parameters: [
              { name: evil, in: 'query', description: evil, schema: { type: 'string', default: evil, enum: [evil] } },
              { name: 'v', in: 'query', required: true, schema: { enum: [evil] } },
              { name: 'HOME', in: 'path', required: true },
              { name: 'place', in: home },
              { name: 'type', in: 'query', schema: { type: home } },
              { name: 'types', in: 'query', schema: { type: ['string', home] } },
              { name: 'inner', in: 'query', schema: { type: 'string', additionalProperties: { type: home } } },
            ],
            requestBody: json({ properties: { [evil]: { pattern: 'a', const: evil } } }),
            responses: { 200: json({ properties: { [evil]: { type: 'number' } } }) },
          },
        },
      },
      {
        info: { title: evil, version: '1' },
        servers: [{ url: 'https://{h}.example/$' + 'HOME', variables: { h: { default: 'x' } } }],
        components: { securitySchemes: { [evil]: { type: 'apiKey', in: 'query', name: evil } } },
        security: [{ [evil]: [] }],
      },
    );
    const { config, endpoints } = await loaded(fileText(await imported(tree)));
    assert.doesNotMatch(JSON.stringify(config), /leak/);
    assert.equal(endpoints.length, 1);
    const texts = JSON.stringify(config).match(/unset-[\w-]+/g);
    const own = ['unset-client-key', 'unset-upstream-home-service-mnemonic-home-home-service-mnemonic-home'];
    assert.deepEqual(new Set(texts), new Set(own));
  });

  it('gives a variable a name of its own, so that no other secret can be asked for', () => {
    for (const [title, scheme] of [
      ['SERVICE', 'PRIVATE_KEY'],
      ['aws', 'secretAccessKey'],
      ['', ''],
      ['__proto__', 'ß'],
    ] as const)
      assert.match(variableOf(title, scheme), /^UPSTREAM_[A-Z0-9_]*$/);
  });

  it('says where a secret of the file would go to another API, whose document is titled so that its name is the same', async () => {
    const of = (title: string, scheme: string, host: string) => {
      const components = { securitySchemes: { [scheme]: { type: 'apiKey', in: 'header', name: 'X-Key' } } };
      const more = { components, security: [{ [scheme]: [] }], servers: [{ url: `https://${host}` }] };
      return imported({ ...api(get({}), more), info: { title, version: '1' } });
    };
    const file = fileText(await of('Coins', 'api_key', 'a.example'));
    assert.deepEqual(merge(file, await of('Coins', 'api_key', 'a.example')).kept, []);
    assert.deepEqual(merge(file, await of('Notes', 'api_key', 'b.example')).kept, []);
    assert.deepEqual(merge(file, await of('Coins API', 'key', 'b.example')).kept, [
      'UPSTREAM_COINS_API_KEY is in the file already, and would go to https://b.example, too: rename it where it must not',
    ]);
  });

  it('gives each API ways in of its own: what is changed of one is not changed of another', async () => {
    const of = (url: string) => ({ servers: [{ url }], get: { responses: {} } });
    const made = await imported(api({ '/a': of('https://a.example'), '/b': of('https://b.example') }));
    const auth = `    auth: { type: apiKey, keys: [ '$${'{CLIENT_KEY}'}' ] }`;
    const lines = fileText(made).split('\n');
    const ways = lines.filter((line) => line.includes(' auth:'));
    assert.deepEqual(ways, [auth, auth]);
  });

  it('writes no YAML of its own', async () => {
    const evil = 'x\'\n"]}\n- name: injected\n# \u2028\r\nauth: {type: free} #\t\u0000';
    const tree = api({
      '/p': {
        get: {
          operationId: evil,
          summary: evil,
          parameters: [{ name: evil, in: 'query', schema: { enum: [evil, 1] } }],
          responses: { 200: json({ properties: { [evil]: { type: 'integer' } } }) },
        },
      },
    });
    const made = await imported({ ...tree, info: { title: evil, version: evil } });
    const { endpoints, config } = await loaded(fileText(made));
    assert.equal(endpoints.length, 1);
    assert.deepEqual(Object.keys(config), ['version', 'apis']);
    assert.deepEqual(endpoints[0]?.auth, [{ type: 'apiKey', keys: ['unset-client-key'] }]);
  });

  it('has its texts as they are, whatever JavaScript takes for the end of a line', async () => {
    const names = ['a\u2028b', 'c\u2029d', 'e\u0085f'];
    const parameters = names.map((name) => ({ name, in: 'query', schema: { type: 'string', enum: [name, 'x'] } }));
    const made = await imported(api(get({ parameters })));
    const { endpoints } = await loaded(fileText(made));
    const expected = names.map((name) => ({ name, schema: { type: 'string', enum: [name, 'x'] } }));
    assert.deepEqual(endpoints[0]?.block.parameters, expected);
    const other = fileText(await imported(api({ '/b': { get: { responses: {} } } })));
    assert.deepEqual((await loaded(merge(other, made).text)).endpoints[1]?.block.parameters, expected);
  });

  it('may refer to itself, to nowhere, and in a long chain', async () => {
    const schemas: Record<string, object> = { loop: { $ref: '#/components/schemas/loop' }, anchor: { $ref: '#many' } };
    for (let i = 0; i < 1000; i++) schemas[`c${i}`] = { $ref: `#/components/schemas/c${i + 1}` };
    // Twice as many at each level: an answer that nobody could write down.
    for (let i = 0; i < 60; i++)
      schemas[`b${i}`] = {
        properties: { x: { $ref: `#/components/schemas/b${i + 1}` }, y: { $ref: `#/components/schemas/b${i + 1}` } },
      };
    const itself = { $ref: '#/components/schemas/many' };
    schemas.many = { allOf: [{ properties: { z: { type: 'string' } } }, ...Array.from({ length: 40 }, () => itself)] };
    const of = (name: string) => json({ $ref: `#/components/schemas/${name}` });
    const paths = Object.fromEntries(
      ['loop', 'c0', 'b0', 'many', 'anchor', 'absent', 'constructor', '__proto__'].map((name) => [
        `/${name}`,
        { put: { requestBody: { required: true, ...of(name) }, responses: { 200: of(name) } } },
      ]),
    );
    const { endpoints, reasons } = await outcome(
      api({ ...paths, '/self': { $ref: '#/paths/~1self' } }, { components: { schemas } }),
    );
    const listed = endpoints.map(({ path }) => path);
    assert.deepEqual(listed, ['/b0', '/many']);
    assert.deepEqual(endpoints[1]?.parameters, [{ name: 'z', in: 'body', schema: { type: 'string' } }]);
    assert.deepEqual(
      new Set(reasons),
      new Set([
        ': has a reference that leads to itself',
        ': has a reference that leads nowhere',
        'body parameter "x": is too large: what lies deep in it may be anything',
        'body parameter "y": is too large: what lies deep in it may be anything',
      ]),
    );
  });

  it('may be deep, and large only within bounds', async (t) => {
    const deep = (levels: number) => `${'{"properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`;
    const of = (schema: string) =>
      JSON.stringify(api({ '/a': { put: { requestBody: json('HERE'), responses: {} } } })).replace('"HERE"', schema);
    const anchor = (i: number) => `a${i}: &a${i} [${`*a${i - 1},`.repeat(i === 0 ? 0 : 10)}1]`;
    const anchors = Array.from({ length: 12 }, (_, i) => anchor(i)).join('\n');
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
      (await runCli(t, ['import', file], { cwd })).stderr.split('\n').at(-2)?.replace(cwd, '');
    assert.equal(await said('deep.json'), 'note: 1 endpoint');
    assert.match((await said('deeper.json')) ?? '', /deeper\.json:1:\d+: is nested too deeply$/);
    assert.match((await said('proto.json')) ?? '', /proto\.json:1:\d+: the key "__proto__" is not allowed$/);
    assert.match((await said('bomb.yaml')) ?? '', /more than 1000000 values, aliases counted each time$/);
    assert.match((await said('proto.yaml')) ?? '', /the key "__proto__" is not allowed$/);
    assert.equal(await said('long.json'), 'error: /long.json: larger than 16 MiB');
    assert.match(
      (await said('other.json')) ?? '',
      /^error: other\.json: OpenAPI 9\.0: import reads OpenAPI 3\.0, 3\.1 and /,
    );
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
    const odd = { odd: { type: 'mutualTLS' } };
    const { endpoints, reasons } = await outcome(
      api(get({ parameters, security: [{ odd: [] }] }), { components: { securitySchemes: odd } }),
    );
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
    assert.deepEqual(Object.keys(apis[0]?.headers ?? {}), ['X-Good']);
    const parameters = apis[0]?.endpoints.flatMap((endpoint) => endpoint.parameters);
    assert.deepEqual(parameters, [
      { name: 'field', in: 'body', schema: { type: 'integer', maximum: 7 } },
      { name: 'a', in: 'body' },
      { name: 'q', schema: { type: 'number', exclusiveMinimum: -1.5, maximum: 1e21 } },
    ]);
    assert.deepEqual(leftOut.map(({ what, reason }) => `${what}: ${reason}`).sort(), [
      ...['a body', 'body "b"'].map((what) => `${what}: is a second one, and left out`),
      'header "X Bad" of the API api: is no valid header name',
      'query parameter "q": "minimum" has more digits than a number keeps, and is not checked',
      'query parameter "q": has a choice with more digits than a number keeps, so that any value is taken',
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

  it('keeps no user name of a server, and tells none', async () => {
    const made = await imported(api(get({}), { servers: [{ url: 'https://user:hunter2@a.example/v1' }] }));
    assert.equal(made.apis[0]?.url, 'https://a.example/v1');
    assert.doesNotMatch(fileText(made) + JSON.stringify(made.leftOut), /hunter2/);
  });
});

describe('of any document', () => {
  const word = fc.oneof(
    fc.string(),
    fc.string({ unit: anyCharacter }),
    fc.constantFrom('', '__proto__', 'constructor', '$' + '{A}', 'null', '1e3', '- a'),
  );
  const schema = fc.letrec((tie) => ({
    schema: fc.record(
      {
        type: fc.oneof(fc.constantFrom('string', 'integer', 'number', 'boolean', 'array', 'object', 'file', 7, null)),
        enum: fc.array(fc.oneof(fc.integer(), word, fc.constant(null)), { maxLength: 3 }),
        default: fc.oneof(word, fc.integer(), fc.boolean()),
        pattern: word,
        minimum: fc.oneof(fc.double(), word),
        exclusiveMinimum: fc.oneof(fc.boolean(), fc.integer()),
        properties: fc.dictionary(word, tie('schema'), { maxKeys: 2 }),
        items: tie('schema'),
        required: fc.oneof(fc.boolean(), fc.array(word, { maxLength: 2 })),
        nullable: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  })).schema;
  const place = fc.constantFrom('query', 'path', 'header', 'cookie', 'body', 'nowhere');
  const parameter = fc.record(
    { name: word, in: place, required: fc.boolean(), schema, description: word },
    { requiredKeys: ['name', 'in'] },
  );
  const operation = fc.record(
    {
      operationId: word,
      summary: word,
      parameters: fc.array(parameter, { maxLength: 3 }),
      requestBody: schema.map(json),
      responses: schema.map((each) => ({ 200: json(each) })),
    },
    { requiredKeys: [] },
  );
  const paths = fc.dictionary(
    word.map((text) => `/${text}`),
    fc.dictionary(fc.constantFrom('get', 'post', 'head'), operation),
    { maxKeys: 3 },
  );

  it('what is made is a config that the service takes, the same each time, and loses no operation silently', {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(paths, async (each) => {
        const tree = () => JSON.parse(JSON.stringify(api(each)));
        const made = await imported(tree()).catch((error: Error) => error.message);
        if (typeof made === 'string') return;
        const whole = made.leftOut.filter(({ what }) => what === undefined);
        const known = made.apis.flatMap(({ endpoints }) => endpoints).length + whole.length;
        assert.ok(known >= Object.values(each).flatMap(Object.keys).length);
        if (made.apis.length === 0) return;
        const text = fileText(made);
        try {
          await loaded(text);
        } catch (error) {
          // Its file would not be written.
          if (!(error instanceof ConfigErrors) || !/__proto__/.test(error.message)) throw error;
        }
        assert.equal(fileText(await imported(tree())), text);
      }),
      { numRuns: 25 },
    );
  });

  it('names are plain, and no two are alike', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 20 }), (texts) => {
        const taken = new Set<string>();
        const names = texts.map((text) => unique(nameOf(text, 'endpoint'), taken));
        assert.equal(new Set(names.map((name) => name.toLowerCase())).size, texts.length);
        for (const name of names) assert.match(name, /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,70}$/);
      }),
    );
  });

  it('merging adds what is missing, takes nothing away, and a second time adds nothing', async () => {
    const styles = [
      (text: string) => text,
      (text: string) => text.replace(/\n$/, ''),
      (text: string) => `${text}\n# end\nserver: { port: 4000 }\n`,
      (text: string) => text.replaceAll('      - name', '      # about\n      - name'),
    ];
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(names, names, fc.constantFrom(...styles), async (before, after, style) => {
        const of = (list: string[]) =>
          imported(
            api(Object.fromEntries(list.map((name) => [`/${name}`, { get: { operationId: name, responses: {} } }]))),
          );
        const own = style(fileText(await of(before)));
        const { text, added } = merge(own, await of(after));
        const pathsIn = (each: string) => [...each.matchAll(/^ *path: \/(.*)$/gm)].map(([, path]) => path);
        const missing = after.filter((name) => !before.includes(name));
        assert.deepEqual([pathsIn(text), added], [[...before, ...missing], missing.length]);
        const lines = text.split('\n');
        for (const line of own.split('\n')) assert.equal(lines.splice(0, lines.indexOf(line) + 1).at(-1), line);
        assert.deepEqual(parse(text).apis[0].endpoints.length, before.length + missing.length);
        assert.equal(merge(text, await of(after)).text, text);
        await loaded(text);
      }),
      { numRuns: 12 },
    );
  });
});

it('two operations that are the same request become one endpoint', async (t: TestContext) => {
  const item = { get: { responses: {} } };
  const cwd = await folderWith(t, { 'a.yaml': stringify(api({ '/a b': item, '/a%20b': item })) });
  const { stdout, stderr } = await runCli(t, ['import', 'a.yaml'], { cwd });
  assert.match(stdout, /- name: get-a-b\n {8}path: \/a%20b\n$/);
  assert.match(stderr, /^left out: GET \/a%20b: .* have the same endpoint ID: they are the same request\./);
});
