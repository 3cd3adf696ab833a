/** What commands print that differs from one run to the next, or is long, and what plugins do to them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { HDNodeWallet, Mnemonic } from 'ethers';
import { folderWith, launchCli, runCli } from './run.ts';
import { configText, endpointId, specifications } from './service-config.ts';

const failed = (message: string) => ({ code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` });
const { eth, all } = specifications();
const IDS = `prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`;
const RECOMMENDATION =
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

describe('config validate', () => {
  it('says where a file is nested too deeply for its parser, and lives', async (t) => {
    const levels = 200_000;
    const cwd = await folderWith(t, {
      'brackets.yaml': `a: ${'['.repeat(levels)}${']'.repeat(levels)}\n`,
      'dashes.yaml': `a: 1\n${'- '.repeat(levels)}\n`,
    });
    const said = (file: string) => runCli(t, ['config', 'validate', '-c', file], { cwd });
    for (const [file, place] of [
      ['brackets.yaml', '1:259'],
      ['dashes.yaml', '2:514'],
    ])
      assert.deepEqual(await said(`${file}`), failed(`${join(cwd, `${file}`)}:${place}: is nested too deeply`));
  });

  for (const [what, plugin, expected] of [
    [
      'ends with one line when a plugin crashes beside it',
      'setImmediate(() => { throw new Error("one\\ntwo"); }); await new Promise((done) => setTimeout(done, 60_000));',
      (url: string) => failed(`uncaught exception: Error: one\\ntwo (at Immediate.<anonymous> (${url}:1:28))`),
    ],
    [
      'is no success when a plugin ends the process',
      'process.exit(0);',
      () => failed("the process was ended by code that is not its own, such as a plugin's: exit code 0"),
    ],
    [
      'ends although a plugin keeps a timer',
      'setInterval(() => {}, 1000); export default { name: "timer", hooks: { onResponseSent() {} } };',
      () => ({ ...failed(''), code: 0, stdout: IDS, stderr: RECOMMENDATION }),
    ],
  ] as const)
    it(what, async (t) => {
      const config = configText(undefined, 'settings: { plugins: [{ source: ./p.mjs }] }');
      const cwd = await folderWith(t, { 'c.yaml': config, 'p.mjs': plugin });
      const ended = await launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }).ended;
      assert.deepEqual(ended, expected(pathToFileURL(join(cwd, 'p.mjs')).href));
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
    const more = 'settings: { plugins: [{ source: ./full.mjs, timeout: 250 }, { source: ./none.mjs }] }';
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, more),
      'none.mjs': `const routes = [{ method: 'GET', path: '/none', admit: true, handle: () => ({ status: 200, body: '' }) }];
        export default { name: 'none', budget: 'none', setup: () => ({ routes }) };`,
      'full.mjs': `const handle = () => ({ status: 200, body: '' });
        const routes = [{ method: 'GET', path: '/full/:id', admit: true, handle }, { method: 'POST', path: '/full', admit: false, handle }];
        export default { name: 'full', setup: () => ({ observe: {}, routes }) };`,
    });
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stderr], [0, '']);
    const [, routes = '', observers, ...rest] = stdout.split('\n\n');
    const rows = routes.split('\n').map((row) => row.split(/ {2,}/));
    assert.deepEqual(rows, [
      ['ROUTE', 'PLUGIN', 'BUDGET', 'BEHIND'],
      ['OPTIONS *', 'cors', '1000 ms', 'no gate'],
      ['GET /health', 'health', '1000 ms', 'no gate'],
      ['GET /ready', 'health', '1000 ms', 'no gate'],
      ['GET /requests/:requestId', 'mode-async', '1000 ms', 'admit'],
      ['GET /full/:id', 'full', '250 ms', 'admit'],
      ['POST /full', 'full', '250 ms', 'no gate'],
      ['GET /none', 'none', '1000 ms', 'admit'],
    ]);
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
    const stages = cells.flatMap(([name = '']) => (name.startsWith(' ') || name.includes('/') ? [] : [name]));
    assert.deepEqual(stages, `${order} ${rest}`.split(' '));
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

  it('prints JSON with stages, routes and observers', async (t) => {
    const cwd = await folderWith(t, {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./full.mjs, timeout: 250 }] }'),
      'full.mjs': `const routes = [{ method: 'POST', path: '/full', admit: true, handle: () => ({ status: 200, body: '' }) }];
        export default { name: 'full', setup: () => ({ observe: {}, routes, hooks: { onError() {} } }) };`,
    });
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml', '--json'], { cwd });
    const { ok, stages, routes, observers, ...rest } = JSON.parse(stdout);
    assert.deepEqual([code, stderr, ok, observers, rest], [0, '', true, ['request-log', 'full'], {}]);
    const under = (name: string) => stages.find(({ stage }: { stage: string }) => stage === name);
    const full = { plugin: 'full', budget: 250 };
    assert.deepEqual(under('onError'), { stage: 'onError', fails: 'open', plugins: [{ ...full, isolated: false }] });
    const free = { plugin: 'auth-free', variant: 'free', budget: 1000, isolated: false };
    assert.deepEqual(under('authenticate').plugins[0], free);
    assert.deepEqual(routes.at(-1), { method: 'POST', path: '/full', ...full, admit: true });
  });
});
