/** Documents of strangers: whatever their texts are, the config that is made of them is one that the service takes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { merge } from '../../cli/import/merge.ts';
import { variableOf } from '../../cli/import/names.ts';
import { folderWith, runCli } from '../cli/run.ts';
import { api, fileText, get, imported, json, loaded } from './documents.ts';

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
    const names = [variableOf('SERVICE', 'PRIVATE_KEY'), variableOf('aws', 'secretAccessKey'), variableOf('', '')];
    for (const name of [...names, variableOf('__proto__', 'ß')]) assert.match(name, /^UPSTREAM_[A-Z0-9_]*$/);
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
    assert.deepEqual(endpoints[0]?.auth, [{ type: 'apiKey', keys: ['unset-client-key.'] }]);
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

  it('keeps no user name of a server, and tells none', async () => {
    const made = await imported(api(get({}), { servers: [{ url: 'https://user:hunter2@a.example/v1' }] }));
    assert.equal(made.apis[0]?.url, 'https://a.example/v1');
    assert.doesNotMatch(fileText(made) + JSON.stringify(made.leftOut), /hunter2/);
  });
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
      const more = await of(after);
      const { text, added } = merge(own, more);
      const missing = after.filter((name) => !before.includes(name));
      const paths: { readonly path: string }[] = parse(text).apis[0].endpoints;
      assert.deepEqual([paths.map(({ path }) => path.slice(1)), added], [[...before, ...missing], missing.length]);
      const lines = text.split('\n');
      for (const line of own.split('\n')) assert.equal(lines.splice(0, lines.indexOf(line) + 1).at(-1), line);
      assert.equal(merge(text, more).text, text);
      await loaded(text);
    }),
    { numRuns: 12 },
  );
});
