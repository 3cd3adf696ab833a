/** Each command prints what its page says, to the letter. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { HDNodeWallet, Mnemonic } from 'ethers';
import { folderWith, launchCli, runCli } from './run.ts';
import { ADDRESS, configText, endpointId, KEY, MNEMONIC, specifications } from './service-config.ts';

const failed = (message: string) => ({ code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` });
const printed = (stdout: string, stderr = '') => ({ code: 0, signal: null, stdout, stderr });
const raw =
  'recommendation: encoding for prices/all: raw answers carry numbers as doubles, an encoding signs every digit\n';

describe('generate-mnemonic', () => {
  it('prints a mnemonic, its private key and its address, and nothing else', async (t) => {
    const { code, stdout, stderr } = await runCli(t, ['generate-mnemonic']);
    assert.deepEqual([code, stderr], [0, '']);
    const [, phrase = '', key, address] =
      /^Mnemonic: ([a-z ]+)\nPrivate key: (0x[0-9a-f]{64})\nAddress: (0x[0-9a-fA-F]{40})\n$/.exec(stdout) ?? [];
    assert.ok(Mnemonic.isValidMnemonic(phrase), stdout);
    const wallet = HDNodeWallet.fromPhrase(phrase);
    assert.deepEqual([key, address], [wallet.privateKey, wallet.address]);
    const again = await runCli(t, ['address'], { env: { SERVICE_MNEMONIC: phrase } });
    assert.equal(again.stdout, `${address}\n`);
  });

  it('never prints the same twice', async (t) => {
    const [one, two] = await Promise.all([runCli(t, ['generate-mnemonic']), runCli(t, ['generate-mnemonic'])]);
    assert.notEqual(one.stdout, two.stdout);
  });
});

describe('address', () => {
  const other = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
  const otherAddress = HDNodeWallet.fromPhrase(other).address;

  it('of a private key, with and without 0x', async (t) => {
    assert.deepEqual(await runCli(t, ['address'], { env: { SERVICE_PRIVATE_KEY: KEY } }), printed(`${ADDRESS}\n`));
    assert.deepEqual(
      await runCli(t, ['address'], { env: { SERVICE_PRIVATE_KEY: KEY.slice(2) } }),
      printed(`${ADDRESS}\n`),
    );
  });

  it('of a mnemonic, which wins', async (t) => {
    const env = { SERVICE_MNEMONIC: other, SERVICE_PRIVATE_KEY: KEY };
    assert.deepEqual(await runCli(t, ['address'], { env }), printed(`${otherAddress}\n`));
  });

  it('of .env in the working directory', async (t) => {
    const cwd = await folderWith(t, { '.env': `SERVICE_MNEMONIC="${MNEMONIC}"\n` });
    assert.deepEqual(await runCli(t, ['address'], { cwd }), printed(`${ADDRESS}\n`));
  });

  it('of the file that --env names, instead of .env', async (t) => {
    const cwd = await folderWith(t, {
      '.env': `SERVICE_MNEMONIC="${other}"\n`,
      'other.env': `SERVICE_PRIVATE_KEY=${KEY}\n`,
    });
    assert.deepEqual(await runCli(t, ['address', '--env', 'other.env'], { cwd }), printed(`${ADDRESS}\n`));
  });

  it('of the real environment before .env', async (t) => {
    const cwd = await folderWith(t, { '.env': `SERVICE_PRIVATE_KEY=${'1'.repeat(64)}\n` });
    assert.deepEqual(await runCli(t, ['address'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }), printed(`${ADDRESS}\n`));
  });

  it('needs a key or a mnemonic', async (t) => {
    assert.deepEqual(await runCli(t, ['address']), failed('SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set'));
  });

  it('never shows a bad key or mnemonic', async (t) => {
    const key = await runCli(t, ['address'], { env: { SERVICE_PRIVATE_KEY: 'hunter2' } });
    const mnemonic = await runCli(t, ['address'], { env: { SERVICE_MNEMONIC: 'hunter2 hunter2' } });
    assert.deepEqual(
      key,
      failed('SERVICE_PRIVATE_KEY must be 32 bytes of hex, not zero and below the order of secp256k1'),
    );
    assert.deepEqual(
      mnemonic,
      failed('SERVICE_MNEMONIC must be a BIP-39 mnemonic: 12 to 24 English words with a valid checksum'),
    );
  });

  it('needs the file that --env names', async (t) => {
    const cwd = await folderWith(t);
    assert.deepEqual(
      await runCli(t, ['address', '--env', 'no.env'], { cwd }),
      failed(`${join(cwd, 'no.env')}: file not found`),
    );
  });
});

describe('config validate', () => {
  const { eth, all } = specifications();

  it('prints the ID of every endpoint, without a signer', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const expected = printed(`prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`, raw);
    assert.deepEqual(await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }), expected);
    assert.deepEqual(await runCli(t, ['config', 'validate', '-c', join(cwd, 'c.yaml')]), expected);
  });

  it('shows with --explain what was hashed', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const expected = printed(`prices/eth ${endpointId(eth)}\n  ${eth}\nprices/all ${endpointId(all)}\n  ${all}\n`, raw);
    assert.deepEqual(await runCli(t, ['config', 'validate', '--explain', '--config=c.yaml'], { cwd }), expected);
  });

  it('needs no variable whose value does not count', async (t) => {
    const text = configText().replace(
      '    auth: { type: free }',
      `    auth: { type: apiKey, keys: ['\${CLIENT_KEY}'] }`,
    );
    const cwd = await folderWith(t, { 'c.yaml': text });
    const { code, stdout } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stdout], [0, `prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`]);
  });

  it('reads variables from .env and from the file that --env names', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(`\${BASE}`),
      '.env': 'BASE=https://api.example.com\n',
      'other.env': 'BASE=https://other.example.com\n',
    });
    const other = specifications('https://other.example.com');
    const one = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    const two = await runCli(t, ['config', 'validate', '-c', 'c.yaml', '--env', 'other.env'], { cwd });
    assert.equal(one.stdout, `prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`);
    assert.equal(two.stdout, `prices/eth ${endpointId(other.eth)}\nprices/all ${endpointId(other.all)}\n`);
    assert.match(one.stderr, /^warning: apis\[0\]\.url: [^\n]+\nrecommendation: [^\n]+\n$/);
  });

  it('prints warnings on stderr, and still succeeds', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText().replace('    auth: { type: free }\n', '') });
    const { code, stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stdout], [0, `prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`]);
    assert.match(stderr, /^(warning: apis\[0\][^\n]+\n)+recommendation: [^\n]+\n$/);
  });

  it('recommends to look where entries are asked for by name', async (t) => {
    const named = ["$.a[?(@.id=='B')].c", "$.a[?(@.id=='D')].c", "$.a[?(@.id=='E')].c", "$.a[?(@.id=='F')].c"];
    const endpoints = named.map((path, i) => ({ name: `e${i}`, path: `/${i}`, encoding: { type: 'string', path } }));
    const apis = [{ name: 'api', url: 'https://api.example.com', auth: { type: 'free' }, endpoints }];
    const cwd = await folderWith(t, { 'c.yaml': JSON.stringify({ version: '1.0', apis }) });
    const { code, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0);
    assert.equal(
      stderr,
      `recommendation: ${named.slice(0, 3).join(', ')} and 1 more: make sure that the upstream lists each name once, ` +
        'since the first entry is signed\n',
    );
  });

  it('recommends an encoding in one line for all raw endpoints', async (t) => {
    const endpoints = ['a', 'b', 'c', 'd'].map((name) => ({ name, path: `/${name}` }));
    const apis = [{ name: 'api', url: 'https://api.example.com', auth: { type: 'free' }, endpoints }];
    const cwd = await folderWith(t, { 'c.yaml': JSON.stringify({ version: '1.0', apis }) });
    const { stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.equal(stderr, raw.replace('prices/all', 'api/a, api/b, api/c and 1 more'));
  });

  it('prints every error on a line of its own', async (t) => {
    const text = configText().replace('encoding:', 'encodign:').replace('required: true', 'required: true, default: 1');
    const cwd = await folderWith(t, { 'c.yaml': text });
    const { code, stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^error: apis\[0\]\.endpoints\[0\]\.encodign: [^\n]*encoding[^\n]*\nerror: apis\[0\]\.endpoints\[1\]\.parameters\[0\][^\n]+\n$/,
    );
  });

  it('names a file that cannot be read', async (t) => {
    const cwd = await folderWith(t);
    assert.deepEqual(
      await runCli(t, ['config', 'validate', '-c', 'no.yaml'], { cwd }),
      failed(`${join(cwd, 'no.yaml')}: file not found`),
    );
  });

  it('says where a file is nested too deeply for its parser, and lives', async (t) => {
    const levels = 200_000;
    const cwd = await folderWith(t, {
      'brackets.yaml': `a: ${'['.repeat(levels)}${']'.repeat(levels)}\n`,
      'dashes.yaml': `a: 1\n${'- '.repeat(levels)}\n`,
    });
    const said = (file: string) => launchCli(t, ['config', 'validate', '-c', file], { cwd }).ended;
    for (const [file, place] of [
      ['brackets.yaml', '1:259'],
      ['dashes.yaml', '2:514'],
    ])
      assert.deepEqual(await said(`${file}`), failed(`${join(cwd, `${file}`)}:${place}: is nested too deeply`));
  });

  it('ends with one line when a plugin crashes beside it', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./crash.mjs }] }'),
      'crash.mjs':
        'setImmediate(() => { throw new Error("one\\ntwo"); }); await new Promise((done) => setTimeout(done, 60_000));',
    });
    const ended = await launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }).ended;
    const place = `(at Immediate.<anonymous> (${pathToFileURL(join(cwd, 'crash.mjs'))}:1:28))`;
    assert.deepEqual(ended, failed(`uncaught exception: Error: one\\ntwo ${place}`));
  });

  it('is no success when a plugin ends the process', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./exit.mjs }] }'),
      'exit.mjs': 'process.exit(0);',
    });
    assert.deepEqual(
      await launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }).ended,
      failed(`the process was ended by code that is not its own, such as a plugin's: exit code 0`),
    );
  });

  it('ends although a plugin keeps a timer', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./timer.mjs }] }'),
      'timer.mjs': 'setInterval(() => {}, 1000); export default { name: "timer", hooks: { onResponseSent() {} } };',
    });
    assert.equal((await launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }).ended).code, 0);
  });
});

describe('config schema', () => {
  it('prints a JSON Schema with the keys of the built-in plugins', async (t) => {
    const { code, stdout, stderr } = await runCli(t, ['config', 'schema']);
    assert.deepEqual([code, stderr, stdout.endsWith('}\n')], [0, '', true]);
    const schema = JSON.parse(stdout);
    assert.match(schema.$schema, /^https?:\/\/json-schema\.org\//);
    assert.deepEqual(Object.keys(schema.properties).sort(), ['apis', 'server', 'settings', 'version']);
    assert.equal(schema.additionalProperties, false);
  });
});

/** The cells of the table of stages, a list for each row. */
function stageCells(stdout: string): string[][] {
  const rows = stdout.slice(0, stdout.indexOf('\n\n')).split('\n');
  const columns = ['VARIANT', 'BUDGET', 'ON FAILURE'].map((title) => rows[0]?.indexOf(title) ?? -1);
  return rows.map((row) => [0, ...columns].map((start, i) => row.slice(start, columns[i]).trimEnd()));
}

describe('plugins', () => {
  it('prints the routes with their plugins, budgets and gates, and who observes', async (t) => {
    const more = 'settings: { plugins: [{ source: ./full.mjs, timeout: 250 }] }';
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, more),
      'full.mjs': `const handle = () => ({ status: 200, body: '' });
        const routes = [{ method: 'GET', path: '/full/:id', admit: true, handle }, { method: 'POST', path: '/full', admit: false, handle }];
        export default { name: 'full', setup: () => ({ observe: {}, routes }) };`,
    });
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stderr], [0, '']);
    const [, routes = '', observers, ...rest] = stdout.split('\n\n');
    assert.deepEqual(
      routes.split('\n').map((row) => row.split(/ {2,}/)),
      [
        ['ROUTE', 'PLUGIN', 'BUDGET', 'BEHIND'],
        ['OPTIONS *', 'cors', '1000 ms', 'no gate'],
        ['GET /health', 'health', '1000 ms', 'no gate'],
        ['GET /ready', 'health', '1000 ms', 'no gate'],
        ['GET /requests/:requestId', 'mode-async', '1000 ms', 'admit'],
        ['GET /full/:id', 'full', '250 ms', 'admit'],
        ['POST /full', 'full', '250 ms', 'no gate'],
      ],
    );
    assert.equal(observers, 'OBSERVERS (told of every request, and change nothing)\n  request-log\n  full\n');
    assert.deepEqual(rest, []);
  });

  it('prints each stage with its failure policy, its taps in order, their variants and budgets', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(
        undefined,
        'settings: { plugins: [{ source: ./b.mjs, timeout: 250 }, { source: ./a.mjs }] }',
      ),
      'a.mjs': 'export default { name: "alpha", hooks: { onHttpRequest() {}, onError() {} } };',
      'b.mjs': 'export default { name: "beta", hooks: { onHttpRequest() {} } };',
    });
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stderr], [0, '']);
    const cells = stageCells(stdout);
    const order =
      'admit resolve parseBody onHttpRequest price authenticate validate vary prepare present answer onBeforeApiCall callApi onAfterApiCall encode encrypt';
    const rest = 'onBeforeSign statements sign attest approve concluded respond onResponseSent onError';
    assert.deepEqual(
      cells.flatMap(([name = '']) => (name.startsWith(' ') || name.includes('/') ? [] : [name])),
      `${order} ${rest}`.split(' '),
    );
    const under = (stage: string) => {
      const from = cells.findIndex(([name]) => name === stage);
      const length = cells.slice(from + 1).findIndex(([name]) => !name?.startsWith(' '));
      return cells.slice(from, length === -1 ? undefined : from + 1 + length);
    };
    assert.deepEqual(under('onHttpRequest'), [
      ['onHttpRequest', '', '', 'fails closed'],
      ['  1. beta', '', '250 ms', ''],
      ['  2. alpha', '', '1000 ms', ''],
    ]);
    assert.deepEqual(under('onError'), [
      ['onError', '', '', 'fails open'],
      ['  1. alpha', '', '1000 ms', ''],
    ]);
    assert.deepEqual(under('sign'), [
      ['sign', '', '', 'fails closed'],
      ['  1. sign-eip191', '', '1000 ms', ''],
    ]);
    const variants = (stage: string) => under(stage).flatMap(([, variant], i) => (i === 0 ? [] : [variant]));
    // x402 has work only where an endpoint asks to be paid.
    assert.deepEqual(variants('authenticate'), ['free', 'apiKey']);
    assert.deepEqual(variants('present'), ['sync', 'async', 'stream']);
    assert.ok(stdout.split('\n').every((row) => row === row.trimEnd()));
  });

  it('names what is wrong with the config', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText().replace("version: '1.0'", '') });
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^error: version: [^\n]+\n$/);
  });
});
