/** `plugin new` writes a plugin and its test, and overwrites nothing. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
// Each template is a plugin with a test of its own, which is what this runs.
import '../../cli/plugin/template/auth/my-plugin.test.ts';
import '../../cli/plugin/template/encoder/my-plugin.test.ts';
import '../../cli/plugin/template/hooks/my-plugin.test.ts';
import '../../cli/plugin/template/route/my-plugin.test.ts';
import { folderWith, launch, PACKAGE_ROOT, runCli } from './run.ts';
import { configText } from './service-config.ts';

const KINDS = 'auth, encoder, hooks, route';

const REGISTER = join(PACKAGE_ROOT, 'cli/plugin/register.mjs');

function nextSteps(folder: string, register = REGISTER): string {
  return `${folder}price-floor.ts
${folder}price-floor.test.ts

Run its test:
  node --import ${register} --test ${folder}price-floor.test.ts

Use it, in a config file beside it:
  settings:
    plugins:
      - source: ./price-floor.ts
        timeout: 1000
        config:
          minimum: 2
`;
}

describe('plugin new', () => {
  it('writes a plugin whose test passes and that a config file can name, in any folder', async (t) => {
    const cwd = await folderWith(t);
    const made = await runCli(t, ['plugin', 'new', 'price-floor', '--dir', 'my/plugins'], { cwd });
    assert.deepEqual(made, { code: 0, signal: null, stderr: '', stdout: nextSteps('my/plugins/') });
    const folder = join(cwd, 'my/plugins');
    assert.deepEqual((await readdir(folder)).toSorted(), ['price-floor.test.ts', 'price-floor.ts']);

    const [, command = ''] = /^ {2}node (.*)$/m.exec(made.stdout) ?? [];
    const tested = await launch(t, process.execPath, ['--test-reporter=tap', ...command.split(' ')], { cwd }).ended;
    assert.deepEqual([tested.code, tested.stderr], [0, '']);
    assert.match(tested.stdout, /^# Subtest: price-floor$/m);
    assert.match(tested.stdout, /^# tests 5\n# suites 1\n# pass 5\n/m);

    const yaml = made.stdout.slice(made.stdout.indexOf('  settings:')).replace(/^ {2}/gm, '');
    await writeFile(join(folder, 'config.yaml'), configText(undefined, yaml));
    const validated = await runCli(t, ['config', 'validate', '-c', 'my/plugins/config.yaml'], { cwd });
    assert.equal(validated.code, 0, validated.stderr);
    assert.match(
      validated.stderr,
      /^warning: settings\.plugins\[0\]: plugin "price-floor" can change what gets signed \(onBeforeApiCall, onAfterApiCall, onBeforeSign\) \(line 5\)$/m,
    );
  });

  it('writes full plugins of each kind, with what a config needs to use them', async (t) => {
    const cwd = await folderWith(t);
    const { stdout } = await runCli(t, ['plugin', 'new', 'tokens', '--kind', 'auth'], { cwd });
    assert.equal(
      stdout.slice(stdout.indexOf('Use it')),
      `Use it, in a config file beside it:
  settings:
    plugins:
      - source: ./tokens.ts
  apis:
    - auth: { type: tokens, tokens: ['\${TOKEN}'] }
`,
    );
    const [, command = ''] = /^ {2}node (.* --test .*)$/m.exec(stdout) ?? [];
    const tested = await launch(t, process.execPath, ['--test-reporter=tap', ...command.split(' ')], { cwd }).ended;
    assert.deepEqual([tested.code, tested.stderr], [0, '']);
    assert.match(tested.stdout, /^# tests 2\n# suites 1\n# pass 2\n/m);
  });

  for (const kind of KINDS.split(', ')) {
    it(`keeps a plugin of the kind ${kind} short`, async () => {
      const text = await readFile(join(PACKAGE_ROOT, 'cli/plugin/template', kind, 'my-plugin.ts'), 'utf8');
      const code = text.replace(/^ *\/\*\*.*?\*\/\n/gms, '').split('\n');
      const lines = code.filter((line) => line.trim() !== '' && !/^ *\/\//.test(line));
      assert.ok(lines.length <= (kind === 'hooks' ? 60 : 40), `${lines.length} lines`);
    });
  }

  it('knows no other kinds', async (t) => {
    const cwd = await folderWith(t);
    const ended = await runCli(t, ['plugin', 'new', 'one', '--kind', 'router'], { cwd });
    const stderr = `error: option --kind <kind>: "router" is none of ${KINDS}\n`;
    assert.deepEqual(ended, { code: 1, signal: null, stdout: '', stderr });
    assert.deepEqual(await readdir(cwd), []);
  });

  it('writes where the user stands, and names the SDK as a folder that has it installed knows it', async (t) => {
    const cwd = await folderWith(t);
    await mkdir(join(cwd, 'node_modules'));
    await symlink(PACKAGE_ROOT, join(cwd, 'node_modules/signed-data-proxy'));
    const { stdout } = await runCli(t, ['plugin', 'new', 'price-floor'], { cwd });
    assert.equal(stdout, nextSteps('', 'signed-data-proxy/plugins-sdk/register'));
    assert.match(await readFile(join(cwd, 'price-floor.ts'), 'utf8'), /^ {4}name: 'price-floor',$/m);
  });

  it('never writes over a file, nor half of a plugin', async (t) => {
    const cwd = await folderWith(t, { 'one.ts': 'mine', 'two.test.ts': 'mine', file: '' });
    await symlink(join(cwd, 'nowhere'), join(cwd, 'three.ts'));
    const refused = async (args: readonly string[], message: string) => {
      const ended = await runCli(t, ['plugin', 'new', ...args], { cwd });
      assert.deepEqual(ended, { code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` });
    };
    await refused(['one'], `${cwd}/one.ts: exists already, nothing was written`);
    await refused(['two'], `${cwd}/two.test.ts: exists already, nothing was written`);
    await refused(['three'], `${cwd}/three.ts: exists already, nothing was written`);
    await refused(['four', '--dir', 'file/below'], `${cwd}/file/below: is no folder`);
    assert.deepEqual((await readdir(cwd)).toSorted(), ['file', 'one.ts', 'three.ts', 'two.test.ts']);
    assert.equal(await readFile(join(cwd, 'one.ts'), 'utf8'), 'mine');
  });

  it('is the only command of its group', async (t) => {
    const { code, stderr } = await runCli(t, ['plugin']);
    const message = 'missing command: one of plugin new';
    assert.deepEqual([code, stderr], [1, `error: ${message}\n`]);
  });

  it('takes only names that are fit for files and plugins', async (t) => {
    const cwd = await folderWith(t);
    const rule =
      'the name of a plugin is lower-case words with dashes between them, such as price-floor, of 64 characters at most';
    const names = ['../x', 'Price', 'a--b', 'a.ts', `a${'b'.repeat(64)}`];
    for (const name of names) {
      const { code, stdout, stderr } = await runCli(t, ['plugin', 'new', name], { cwd });
      assert.deepEqual([code, stdout, stderr], [1, '', `error: ${rule}\n`], name);
    }
    const { stderr } = await runCli(t, ['plugin', 'new', 'cache'], { cwd });
    assert.equal(stderr, 'error: the name "cache" is that of a built-in plugin\n');
    assert.deepEqual(await readdir(cwd), []);
  });
});
