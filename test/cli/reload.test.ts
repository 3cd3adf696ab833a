/** A SIGHUP or a changed file reloads the config, or leaves everything as it was. */
import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { COUNTED, folderWith, launchCli, type Running } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';

const ONE = 'https://one.example.com';
const TWO = 'https://two.example.com';
const THREE = 'https://three.example.com';
const BASE = `\${BASE}`;
const OTHER_KEY = '1'.repeat(64);

/** Longer than it takes to see that a watched file has changed. */
const A_WHILE = 1000;

/** The endpoints of `configText`, as the log names them: the URL is part of their IDs. */
function endpoints(url: string): string[] {
  const { eth, all } = specifications(url);
  return [`prices/eth ${endpointId(eth)}`, `prices/all ${endpointId(all)}`];
}

const marked = (mark: string, url: string) => endpoints(url).map((endpoint) => `INFO ${mark} ${endpoint}`);
const reloaded = (url: string, old = url) =>
  url === old
    ? ['INFO config reloaded', ...marked('=', url)]
    : ['INFO config reloaded', ...marked('+', url), ...marked('-', old)];
const KEPT = 'ERROR the config was not reloaded: the one before stays in force';

/** Resolves when the process has logged the endpoint of that URL behind the mark. */
const logged = ({ output }: Running, mark: string, url: string) =>
  output(new RegExp(`INFO \\${mark} ${endpoints(url)[1]}\n`));
const serving = ({ output }: Running, url: string) => output(new RegExp(`INFO ${endpoints(url)[1]}\n`));

/** Ends the process; resolves with the lines since it began to serve, without their times, requests and warnings of the URL. */
async function linesOf(running: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<string[]> {
  running.child.kill(signal);
  const { code, signal: killer, stdout, stderr } = await running.ended;
  assert.deepEqual([code, killer, stderr], [0, null, '']);
  const lines = stdout.split('\n').map((line) => line.replace(/^\S+Z /, ''));
  const from = lines.findIndex((line) => line.startsWith('INFO prices/all '));
  return lines
    .slice(from + 1, lines.indexOf(`INFO stopping signal=${signal}`))
    .filter((line) => !/^WARN apis\[0\]\.url: |^INFO GET /.test(line));
}

async function startIn(t: TestContext, files: Readonly<Record<string, string>>, ...options: string[]) {
  const cwd = await folderWith(t, files);
  const env = { ...COUNTED, SERVICE_PRIVATE_KEY: KEY };
  const running = launchCli(t, ['start', '-c', 'c.yaml', ...options], { cwd, env });
  return { cwd, running, write: (name: string, text: string) => writeFile(join(cwd, name), text) };
}

describe('SIGHUP', { concurrency: 3 }, () => {
  it('reads the config and the variables again, and warns of lines that say nothing; after an error the process goes on as it was', async (t) => {
    const files = { 'c.yaml': configText(BASE), 'my.env': `BASE=${ONE}\n` };
    const { cwd, running, write } = await startIn(t, files, '--env', 'my.env');
    await serving(running, ONE);
    const { child, output } = running;

    await write('my.env', `BASE=${TWO}\nKEY hunter2\n`);
    child.kill('SIGHUP');
    await logged(running, '-', ONE);

    await write('c.yaml', configText(BASE).replace('encoding:', 'encodign:'));
    child.kill('SIGHUP');
    await output(/encodign: .*\n.*not reloaded.*\n/);

    await rm(join(cwd, 'my.env'));
    child.kill('SIGHUP');
    await output(/my\.env: .*\n.*not reloaded.*\n/);
    const [, url] = await output(/listening on (http:\/\/\S+)/);
    assert.equal((await fetch(`${url}/health`)).status, 200);

    await write('my.env', `BASE=${TWO}\nSERVICE_PRIVATE_KEY=${OTHER_KEY}\n`);
    await write('c.yaml', configText(BASE));
    child.kill('SIGHUP');
    await logged(running, '=', TWO);

    const lines = await linesOf(running);
    const wrong = lines.findIndex((line) => line.includes('encodign'));
    assert.match(lines.splice(wrong, 1)[0] ?? '', /^ERROR apis\[0\]\.endpoints\[0\]\.encodign: .*"encoding"/);
    const ignored = `WARN ${join(cwd, 'my.env')}:2: this line is ignored: write NAME=value`;
    assert.deepEqual(lines, [
      ...[ignored, ...reloaded(TWO, ONE)],
      ...[ignored, KEPT],
      `ERROR ${join(cwd, 'my.env')}: file not found`,
      KEPT,
      // The key that came with the process wins over that of a file for as long as it lives: nothing to warn of.
      ...reloaded(TWO),
    ]);
  });

  it('that comes before it listens is answered then, and does not end the process', async (t) => {
    const plugin = `import { existsSync } from 'node:fs';
      console.log('loading');
      while (!existsSync(new URL('go', import.meta.url))) await new Promise((done) => setTimeout(done, 10));
      export default { name: 'p', hooks: { onResponseSent() {} } };`;
    const more = 'settings: { plugins: [{ source: ./p.mjs }] }';
    const { running, write } = await startIn(t, { 'c.yaml': configText(ONE, more), 'p.mjs': plugin });
    await running.output(/loading/);
    await write('c.yaml', configText(TWO, more));
    // One signal: with another one under way the system may hand a second to a thread that is not awake yet.
    running.child.kill('SIGHUP');
    await write('go', '');
    await logged(running, '-', ONE);
    const lines = await linesOf(running);
    const anew = 'INFO plugins were set up anew; changes of their code need a restart';
    assert.deepEqual(lines, [...reloaded(TWO, ONE), anew]);
  });

  it('is what it takes without --watch; it warns of another signing key', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText(ONE), '.env': `SERVICE_PRIVATE_KEY=${KEY}\n` });
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd });
    await serving(running, ONE);
    await writeFile(join(cwd, 'c.yaml'), configText(TWO));
    await sleep(A_WHILE);
    await writeFile(join(cwd, 'c.yaml'), configText(THREE));
    await writeFile(join(cwd, '.env'), `SERVICE_PRIVATE_KEY=${OTHER_KEY}\n`);
    running.child.kill('SIGHUP');
    await running.output(/signing key/);
    const warning = 'WARN the signing key stays the same until the service is restarted';
    assert.deepEqual(await linesOf(running, 'SIGINT'), [...reloaded(THREE, ONE), warning]);
  });

  it('changes LOG_LEVEL of the variables file; what is no level changes nothing', async (t) => {
    const variables = (level: string, key: string) => `LOG_LEVEL=${level}\nSERVICE_PRIVATE_KEY=${key}\n`;
    const cwd = await folderWith(t, { 'c.yaml': configText(ONE), 'my.env': variables('info', KEY) });
    const running = launchCli(t, ['start', '-c', 'c.yaml', '--env', 'my.env'], { cwd });
    const [, url = ''] = await running.output(/listening on (http:\/\/\S+)/);
    const reloadAt = async (level: string, seen: RegExp) => {
      await writeFile(join(cwd, 'my.env'), variables(level, OTHER_KEY));
      running.child.kill('SIGHUP');
      await running.output(seen);
      assert.equal((await fetch(`${url}/ready?${level}`)).status, 200);
    };
    await serving(running, ONE);
    await reloadAt('warn', /WARN the signing key stays the same/);
    const unknown = /ERROR LOG_LEVEL must be one of [^\n]*, not "verbose"\n\S+ ERROR the config was not reloaded/;
    await reloadAt('verbose', unknown);
    await reloadAt('debug', /INFO config reloaded\n/);
    await running.output(/DEBUG timeline /);
    await reloadAt('info', /INFO config reloaded\n[\s\S]*INFO config reloaded\n/);
    const { code, stdout } = await running.stop();
    assert.equal(code, 0);
    const lines = stdout
      .split('\n')
      .flatMap((line) => /(?:DEBUG timeline|INFO GET \/ready 200) /.exec(line)?.[0] ?? []);
    assert.deepEqual(lines, ['INFO GET /ready 200 ', 'DEBUG timeline ', 'INFO GET /ready 200 ']);
  });
});

describe('start --watch', () => {
  it('reloads when a file changes, is replaced, or comes, and at no other time', async (t) => {
    const { cwd, running, write } = await startIn(t, { 'c.yaml': configText(ONE) }, '--watch');
    const { output } = running;
    await serving(running, ONE);
    // There is no .env, which is no change.
    await sleep(A_WHILE);
    const replace = async (name: string, text: string) => {
      await write(`${name}.new`, text);
      await rename(join(cwd, `${name}.new`), join(cwd, name));
    };
    await replace('c.yaml', configText(TWO));
    await logged(running, '-', ONE);
    await replace('.env', `BASE=${THREE}\n`);
    await logged(running, '=', TWO);
    await replace('c.yaml', 'apis: [');
    await output(/not reloaded/);
    await replace('c.yaml', configText(BASE));
    await logged(running, '-', TWO);
    // In place, as a shell does: what is seen of it half-way is an error at most.
    await write('.env', `BASE=${ONE}\n`);
    await logged(running, '-', THREE);
    await write('c.yaml', configText(TWO));
    await output(new RegExp(`- ${endpoints(ONE)[1]}\n[^]*- ${endpoints(ONE)[1]}\n`));
    const lines = await linesOf(running);
    const first = [...reloaded(TWO, ONE), ...reloaded(TWO)];
    assert.deepEqual(lines.slice(0, first.length), first);
    assert.match(String(lines[first.length]), /^ERROR /);
    const rest = lines.slice(first.length).filter((line) => !line.startsWith('ERROR '));
    assert.deepEqual(rest, [...reloaded(THREE, TWO), ...reloaded(ONE, THREE), ...reloaded(TWO, ONE)]);
  });
});
