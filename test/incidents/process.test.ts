/** What a process runs out of, found by alerts. */
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launch, PROGRAM } from '../cli/run.ts';
import { configText, KEY } from '../cli/service-config.ts';
import { onSignal } from '../cli/started.ts';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { Scrape } from '../support/metrics.ts';

/** A service of which a plugin takes something when it is told to. @param shell before the service starts. */
async function start(t: TestContext, body: string, shell: string, env = {}) {
  const settings = 'settings: { metrics: { port: 0 }, plugins: [{ source: ./p.mjs }] }';
  const cwd = await folderWith(t, {
    ...onSignal(`${body}\nprocess.stdout.write('taken');`),
    'c.yaml': configText(undefined, settings),
  });
  const words = ['-c', `${shell} exec "$@"`, 'sh', process.execPath, PROGRAM];
  const { child, output } = launch(t, 'sh', [...words, 'start', '-c', 'c.yaml'], {
    ...{ cwd, env: { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json', ...env } },
  });
  const [, url = ''] = await output(/metrics on (http:[^"]+)/);
  await output(/listening on/);
  // A connection of its own: the server may close one that is kept while it is busy.
  const scrape = async () => new Scrape(await (await fetch(url, { headers: { connection: 'close' } })).text());
  const take = async () => {
    child.kill('SIGUSR2');
    await output(/taken/);
    return scrape();
  };
  return { take, before: { scrape: await scrape(), minutes: 5 } };
}

describe('an incident', { skip: withoutPromtool }, () => {
  it('of a heap that is nearly full', async (t) => {
    const fill = `
      // What is garbage now does not count later.
      process.getBuiltinModule('v8').setFlagsFromString('--expose-gc');
      process.getBuiltinModule('vm').runInNewContext('gc')();
      globalThis.kept = [];
      // Large objects leave no gaps between them: with gaps the heap would be full before that much of it is used.
      while (process.memoryUsage().heapUsed < 0.93 * 2 ** 28) kept.push(Array(50_000).fill(kept.length + 0.5));`;
    const { take, before } = await start(t, fill, '', { NODE_OPTIONS: '--max-old-space-size=256' });
    const after = await take();
    await assertFires(t, [before, { scrape: after, minutes: 3 }], ['HeapNearlyFull']);
  });

  it('of file descriptors that run out', async (t) => {
    const open = `
      const { openSync, readdirSync } = process.getBuiltinModule('fs');
      while (readdirSync('/proc/self/fd').length < 220) openSync('/dev/null');`;
    const { take, before } = await start(t, open, 'ulimit -n 256;');
    const after = await take();
    await assertFires(t, [before, { scrape: after, minutes: 6 }], ['FileDescriptorsShort']);
  });
});
