/** Generated references and editors know each key of the config. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse as parseEnvironment } from 'dotenv';
import { parse } from 'yaml';
import { composeSchema, loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { generatedFiles } from '../../tools/scripts/generate-docs.ts';
import { folderWith, PACKAGE_ROOT, runCli } from '../cli/run.ts';
import { textsOf, wholeConfig } from '../support/docs.ts';

const SCHEMA = 'config/config.schema.json';
const REFERENCE = 'docs/configuration.md';
const EXAMPLES = ['minimal', 'complete'];

const read = (path: string) => readFile(join(PACKAGE_ROOT, path), 'utf8');
const exampleText = (name: string) => read(`examples/configs/${name}.yaml`);
const reference = await read(REFERENCE);
const blocks = (language: string) => textsOf(reference, language);

/** An independent validator, with the schema file as editors get it. */
const validate = new Ajv2020({ allErrors: true }).compile(JSON.parse(await read(SCHEMA)));

const plugin = `export default ({ days }) => ({
  name: 'no-weekends',
  hooks: { onHttpRequest: () => (days.includes(new Date().getUTCDay()) ? { reject: true } : undefined) },
});`;

async function loaded(t: TestContext, text: string) {
  const folder = await folderWith(t, { 'config.yaml': text });
  await mkdir(join(folder, 'plugins'));
  await writeFile(join(folder, 'plugins/no-weekends.mjs'), plugin);
  const env = parseEnvironment(blocks('dotenv').join(''));
  return loadConfig({ file: join(folder, 'config.yaml'), env, builtins: definitions() });
}

/** Dotted paths of all scalars and empty values, as the reference writes them. */
function leaves(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => leaves(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([key, member]) => leaves(member, path === '' ? key : `${path}.${key}`));
}

describe('the files that are generated from the schema', () => {
  const generated = generatedFiles();
  for (const path of [SCHEMA, REFERENCE, 'docs/plugins.md']) {
    it(`${path} is what npm run docs writes`, async () => assert.equal(await read(path), generated.get(path)));
  }

  it('the schema file is what config schema prints', async () => {
    const composed: unknown = JSON.parse(JSON.stringify(composeSchema(definitions())));
    assert.deepEqual(JSON.parse(await read(SCHEMA)), composed);
  });
});

describe('the example configs in an editor', () => {
  for (const name of EXAMPLES) {
    it(`${name}: its first line names the schema file`, async () => {
      const [first = ''] = (await exampleText(name)).split('\n');
      const [, path = ''] = /^# yaml-language-server: \$schema=(\S+)$/.exec(first) ?? [];
      const file = resolve(PACKAGE_ROOT, dirname(`examples/configs/${name}.yaml`), path);
      assert.equal(relative(PACKAGE_ROOT, file), SCHEMA);
    });

    it(`${name}: it is valid there, and no longer with an unknown key`, async () => {
      const config: { readonly apis: readonly object[] } = parse(await exampleText(name));
      assert.ok(validate(config), JSON.stringify(validate.errors));
      assert.ok(!validate({ ...config, surplus: 1 }));
      assert.ok(!validate({ ...config, apis: [{ ...config.apis[0], timeout: 'soon' }] }));
    });
  }
});

describe('the configuration reference', () => {
  it('has a row for every key of the complete example', async () => {
    const rows = new Set([...reference.matchAll(/^\| `([^`]+)` \|/gm)].map(([, key]) => key));
    const keys = leaves(parse(await exampleText('complete'))).map((path) =>
      path
        .replace(
          /(plugins\[\]\.config|headers|amount\.per|parameters\[\]\.schema|parameters\[\]\.map|expect\.schema)\..*$/,
          '$1',
        )
        .replace(/\.(auth|facilitator)\[\]/g, '.$1')
        .replace(/\.endpoints\[\]\.(auth|cache|retry|expect)\b/, '.$1')
        .replace('.signer.next.', '.signer.')
        .replace(/\[\]$/, ''),
    );
    assert.ok(keys.length > 50);
    assert.deepEqual(
      [...new Set(keys)].filter((key) => !rows.has(key)),
      [],
    );
  });

  it('says of a key what it may be, its default, and what it means', () => {
    const rows = [
      '| `version` | string `^1\\.\\d+$` | **required** | 1.\\<number>, such as 1.0: the version of the format that this release reads |',
      '| `apis[].auth.amount` | string `^[1-9][0-9]{0,77}$` | **required** | with `type: x402`: Integer in the smallest unit of the token |',
      '| `server.rateLimit.max` | integer, 1 to 1000000000 | 100 | Requests per window |',
      '| `settings.proof` | `none` or mapping | none | TLS proofs of upstream answers |',
      '| `settings.fhe.network` | `sepolia`, `mainnet` | **required** | Chain of the contracts |',
      '| `apis[].auth.type` | `free`, `apiKey`, `x402`, `x402-exact` | **required** | Which kind it is |',
      '| `apis[].auth.accepts[].amount.by` | string | **required** | Name of a price that a plugin has at the stage `price` |',
      '| `apis[].auth.keys` | list of strings, not empty | **required** | with `type: apiKey`: Accepted keys: texts, or mappings with a name |',
      '| `apis[].auth` | mapping or list of mappings, not empty | free | Who may call; any one method is enough |',
      '| `apis[].endpoints[].auth` | as `apis[].auth` |  |  |',
      '| `settings.signer.next` | as `settings.signer` |  | with `type: json-rpc`, `web3signer`, `aws-kms`, `environment`: The next signer, during a rotation |',
      '| `apis[].endpoints[].parameters[].in` | `query`, `header`, `path`, `cookie`, `body`, `none` | query | Where it is sent; none: only used in paths |',
    ];
    for (const row of rows) assert.ok(reference.includes(`\n${row}\n`), row);
  });

  for (const [index, block] of blocks('yaml').entries()) {
    it(`example ${index + 1} can be loaded, and editors find nothing in it`, async (t) => {
      const text = wholeConfig(block);
      const { warnings } = await loaded(t, text);
      const unexpected = warnings.filter(({ message }) => !message.startsWith('no auth on the API'));
      assert.deepEqual(unexpected, []);
      assert.ok(validate(parse(text)), JSON.stringify(validate.errors));
    });
  }

  it('its commands run, the first example being the file', async (t) => {
    const cwd = await folderWith(t, { 'config.yaml': blocks('yaml')[0] ?? '' });
    const commands = blocks('sh').map((text) => /^npm run -s cli -- (.+)\n$/.exec(text)?.[1]?.split(' ') ?? []);
    assert.deepEqual(
      commands.map(([first, second]) => `${first} ${second}`),
      ['config validate', 'config schema'],
    );
    const ended = await Promise.all(commands.map((args) => runCli(t, args, { cwd })));
    assert.deepEqual(
      ended.map(({ code }) => code),
      [0, 0],
    );
    assert.match(ended[0]?.stdout ?? '', /^prices\/eth-usd 0x[0-9a-f]{64}\n$/);
    assert.deepEqual(JSON.parse(ended[1]?.stdout ?? ''), JSON.parse(await read(SCHEMA)));
  });
});
