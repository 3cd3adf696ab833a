/** Configs and variables may be pipes, which are read to their end within a size and a deadline. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launch, launchCli, PROGRAM } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';

const { eth, all } = specifications();
const ids = `prices/eth ${endpointId(eth)}\nprices/all ${endpointId(all)}\n`;
const serving = new RegExp(`prices/all ${endpointId(all)}\n`);
const late = (file: string) => `${file}: was not read to its end within 5000 ms`;
const skip = spawnSync('mkfifo', ['--version']).error === undefined ? false : 'there is no mkfifo here';
const env = { SERVICE_PRIVATE_KEY: KEY };

function fifo(folder: string, name: string): string {
  const path = join(folder, name);
  execFileSync('mkfifo', [path]);
  return path;
}

/** Writes a part, once somebody reads, and keeps the pipe open. */
async function writeHalf(t: TestContext, path: string, text: string): Promise<FileHandle> {
  const writer = await open(path, 'w');
  t.after(() => writer.close());
  await writer.write(text);
  return writer;
}

/** The lines of the log without times, requests and warnings, from that one on. */
function linesFrom(stdout: string, first: string): string[] {
  const lines = stdout.split('\n').map((line) => line.replace(/^\S+Z /, ''));
  return lines.slice(lines.indexOf(first)).filter((line) => line !== '' && !/^WARN |^INFO GET /.test(line));
}

describe('files that are pipes', { skip, concurrency: 4 }, () => {
  it('are read to their end, whoever comes first', async (t) => {
    const cwd = await folderWith(t);
    const running = launchCli(t, ['start', '-c', fifo(cwd, 'c.yaml'), '--env', fifo(cwd, 'my.env')], { cwd });
    const writer = await writeHalf(t, join(cwd, 'my.env'), 'SERVICE_PRIVATE_');
    await writer.write(`KEY=${KEY}\nBASE=https://api.example.com\n`);
    await writer.close();
    await writeFile(join(cwd, 'c.yaml'), configText(`\${BASE}`));
    await running.output(serving);
    const { code, stderr } = await running.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });

  it('are what a shell makes of a command', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const command = `node ${PROGRAM} config validate -c <(cat c.yaml) --env <(echo A=1)`;
    const { code, stdout } = await launch(t, 'bash', ['-c', command], { cwd }).ended;
    assert.deepEqual([code, stdout], [0, ids]);
  });

  it('larger than the limit are refused, also without an end', async (t) => {
    const cwd = await folderWith(t);
    const path = fifo(cwd, 'c.yaml');
    const { ended } = launchCli(t, ['config', 'validate', '-c', path], { cwd });
    const writer = await open(path, 'w');
    t.after(() => writer.close());
    const written = writer.write(Buffer.alloc(3 * 1024 * 1024, 'a')).catch(() => undefined);
    assert.equal((await ended).stderr, `error: ${path}: larger than 1 MiB\n`);
    await written;
  });

  it('that nobody writes to, or not to the end, are an error with the deadline in it', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const silent = fifo(cwd, 'silent');
    const half = fifo(cwd, 'half');
    const validate = (...args: string[]) => launchCli(t, ['config', 'validate', ...args], { cwd }).ended;
    const [config, variables, started] = await Promise.all([
      validate('-c', silent),
      validate('-c', 'c.yaml', '--env', silent),
      Promise.all([launchCli(t, ['start', '-c', half], { cwd, env }).ended, writeHalf(t, half, "version: '1.0'\n")]),
    ]);
    const failed = (file: string) => ({ code: 1, signal: null, stdout: '', stderr: `error: ${late(file)}\n` });
    assert.deepEqual([config, variables, started[0]], [failed(silent), failed(silent), failed(half)]);
  });

  it('do not keep the process from ending by SIGTERM while it starts', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const silent = fifo(cwd, 'silent');
    for (const args of [
      ['-c', silent],
      ['-c', 'c.yaml', '--env', silent],
    ]) {
      const running = launch(t, process.execPath, [PROGRAM, 'start', ...args], { cwd, env });
      // Somebody reads by the time that a writer can open it.
      const writer = await open(silent, 'w');
      t.after(() => writer.close());
      const { code, signal, stderr } = await running.stop();
      assert.deepEqual([code, signal, stderr], [0, null, '']);
    }
  });

  it('cannot hang a reload: the config before stays in force, and the next reload works', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env });
    await running.output(serving);
    const [, url] = await running.output(/listening on (http:\/\/\S+)/);
    await rename(join(cwd, 'c.yaml'), join(cwd, 'good'));
    const path = fifo(cwd, 'c.yaml');
    running.child.kill('SIGHUP');
    await writeHalf(t, path, "version: '1.0'\napis:\n");
    assert.equal((await fetch(`${url}/health`)).status, 200);
    await running.output(/not reloaded.*\n/);
    await rm(path);
    await rename(join(cwd, 'good'), join(cwd, 'c.yaml'));
    running.child.kill('SIGHUP');
    await running.output(/config reloaded\n(?:.*\n)*.*= prices\/all.*\n/);
    const { code, stdout, stderr } = await running.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(linesFrom(stdout, `ERROR ${late(path)}`), [
      `ERROR ${late(path)}`,
      'ERROR the config was not reloaded: the one before stays in force',
      'INFO config reloaded',
      ...ids
        .trim()
        .split('\n')
        .map((line) => `INFO = ${line}`),
      'INFO stopping signal=SIGTERM',
      'INFO stopped',
    ]);
  });

  it('do not keep the process from ending by SIGTERM while it reloads', async (t) => {
    for (const name of ['c.yaml', '.env']) {
      const cwd = await folderWith(t, { 'c.yaml': configText(), '.env': '' });
      const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env });
      await running.output(serving);
      await rm(join(cwd, name));
      const path = fifo(cwd, name);
      running.child.kill('SIGHUP');
      await writeHalf(t, path, 'A');
      const { code, signal, stdout, stderr } = await running.stop();
      assert.deepEqual([code, signal, stderr], [0, null, '']);
      const stopping = 'INFO stopping signal=SIGTERM';
      assert.deepEqual(linesFrom(stdout, stopping), [stopping, 'INFO stopped']);
    }
  });
});
