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
    assert.match(tested.stdout, /^# Subtest: rejects a client that does not send the header$/m);
    assert.match(tested.stdout, /^# tests 5\n# suites 0\n# pass 5\n/m);

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
    assert.match(tested.stdout, /^# tests 2\n# suites 0\n# pass 2\n/m);
  });

  for (const kind of ['auth', 'encoder', 'hooks', 'route']) {
    it(`keeps a plugin of the kind ${kind} short`, async () => {
      const text = await readFile(join(PACKAGE_ROOT, 'cli/plugin/template', kind, 'my-plugin.ts'), 'utf8');
      const code = text.replace(/^ *\/\*\*.*?\*\/\n/gms, '').split('\n');
      const lines = code.filter((line) => line.trim() !== '' && !/^ *\/\//.test(line));
      assert.ok(lines.length <= (kind === 'hooks' ? 60 : 40), `${lines.length} lines`);
    });
  }

  it('writes where the user stands, and names the SDK as a folder that has it installed knows it', async (t) => {
    const cwd = await folderWith(t);
    await mkdir(join(cwd, 'node_modules'));
    await symlink(PACKAGE_ROOT, join(cwd, 'node_modules/signed-data-proxy'));
    const { stdout } = await runCli(t, ['plugin', 'new', 'price-floor'], { cwd });
    assert.equal(stdout, nextSteps('', 'signed-data-proxy/plugins-sdk/register'));
    assert.match(await readFile(join(cwd, 'price-floor.ts'), 'utf8'), /^ {4}name: 'price-floor',$/m);
  });

  it('never writes where a link leads', async (t) => {
    const cwd = await folderWith(t);
    await symlink(join(cwd, 'nowhere'), join(cwd, 'three.ts'));
    const stderr = `error: ${cwd}/three.ts: exists already, nothing was written\n`;
    const ended = await runCli(t, ['plugin', 'new', 'three'], { cwd });
    assert.deepEqual(ended, { code: 1, signal: null, stdout: '', stderr });
    assert.deepEqual(await readdir(cwd), ['three.ts']);
  });
});
