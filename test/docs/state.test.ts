/** The settings that docs/state.md shows can be used. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { examine } from '../../builtins/state-redis/examine.ts';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';
import { folder, put, started } from '../state/file-setup.ts';
import { describeServers, freePort, openEngine, startProgram } from '../state/redis-server.ts';
import { blockNamed, readPage } from '../support/docs.ts';
import { retried } from '../support/wait.ts';

const page = await readPage('docs/state.md');

describeServers('the settings of docs/state.md', (program) => {
  it('give nothing to complain of, and let the user do what the service does, and no more', async (t) => {
    const settings = blockNamed(page, 'valkey.conf').replace('STATE_PASSWORD', 'secret');
    const folder = await folderWith(t, { 'valkey.conf': settings });
    const port = await freePort();
    startProgram(t, program, [join(folder, 'valkey.conf'), '--dir', folder, '--port', `${port}`]);
    const url = `redis://signed-data-proxy:secret@127.0.0.1:${port}/1`;
    const { engine, logged } = await retried(async () => {
      const opened = openEngine({ url });
      await opened.engine.start();
      return opened;
    });
    t.after(() => engine.close());
    assert.deepEqual([engine.doubts(), logged], [[], []]);
    const area = engine.area('x402');
    assert.equal(await area.compareAndSet('a', undefined, 'b', { ttl: 60_000 }), undefined);
    assert.equal(await area.compareAndSet('a', 'b', 'c', { ttl: 1, keepLonger: true, durable: true }), undefined);
    assert.equal(await area.get('a'), 'c');
    assert.equal(await area.compareAndSet('a', 'c', undefined), undefined);
    assert.equal((await area.takeTokens('a', { max: 2, window: 1000 })).granted, 1);
    const others = openEngine({ url, prefix: 'other:' });
    await others.engine.start();
    t.after(() => others.engine.close());
    await assert.rejects(others.engine.area('x402').get('a'), /does not allow its user what is needed: NOPERM/);
  });
});

/** What a server with these fields is told, as the page writes it. */
function saidOf(fields: Readonly<Record<string, string>>, appendfsync?: string): readonly string[] {
  const all = { redis_version: '7.0.0', role: 'master', connected_slaves: '0', aof_enabled: '1', ...fields };
  const info = Object.entries(all).map((field) => field.join(':'));
  const { doubts, warnings } = examine('…', 'url', info.join('\r\n'), appendfsync);
  return [...doubts.map((text) => `${text} | no start`), ...warnings.map((text) => `${text} | warning`)];
}

const rows = [...page.matchAll(/^\| `(.*?)` \| (no start|warning)/gm)].map(([, text, end]) => `${text} | ${end}`);

it('docs/state.md says what is wrong with a server, in the words of the service', () => {
  const said = [
    saidOf({ aof_enabled: '0' }),
    saidOf({ maxmemory_policy: '…' }, 'always'),
    saidOf({}, 'no'),
    saidOf({}, 'everysec'),
    saidOf({}),
    saidOf({ connected_slaves: '1' }, 'always'),
  ].flat();
  assert.deepEqual(
    rows.slice(0, said.length).map((row) => `settings.state: ${row}`),
    said,
  );
});

it('docs/state.md says how to copy a state file while it is used', async (t) => {
  const directory = await folder(t);
  const engine = await started(t, join(directory, 'payments'));
  await put(engine.area('x402'), 'a', 'redeemed');
  const [, command = ''] = /^node -e "(.*)"\n$/.exec(blockNamed(page, 'copy-state')) ?? [];
  const script = command
    .replace('/var/lib/signed-data-proxy/', `${directory}/`)
    .replace('/backup/', `${directory}/backup/`);
  const copying = spawn(process.execPath, ['-e', script], { cwd: PACKAGE_ROOT, stdio: 'inherit' });
  for (let n = 0; copying.exitCode === null; n++) await put(engine.area('x402'), `later ${n}`, 'redeemed');
  assert.equal(copying.exitCode, 0);
  const copy = await started(t, join(directory, 'backup', 'payments'));
  assert.equal(await copy.area('x402').get('a'), 'redeemed');
});

it('docs/state.md quotes texts that the engines have', async () => {
  const sources = await Promise.all(
    ['builtins/state-redis', 'builtins/state-file', 'service'].map(async (folder) => {
      const names = (await readdir(join(PACKAGE_ROOT, folder))).filter((name) => name.endsWith('.ts'));
      return Promise.all(names.map((name) => readFile(join(PACKAGE_ROOT, folder, name), 'utf8')));
    }),
  );
  const known = sources.flat(2).join('\n');
  const quoted = [...page.matchAll(/`([^`]*(?:state file|settings\.state: )[^`]*)`/g)].map(([, text = '']) => text);
  const others = rows.slice(6).map((row) => row.replace(/ \| .*/, ''));
  assert.ok(others.length > 8 && quoted.length > 4);
  // What a text is put together of stands in several places.
  const parts = [...others, ...quoted].flatMap((text) => text.replace(/\s+/g, ' ').split(/…|[:;(] ?| by /));
  assert.deepEqual(
    parts.map((part) => part.trim()).filter((part) => !known.includes(part)),
    [],
  );
});
