/** A service keeps within a small heap, and a full one leaves a snapshot where asked. */
import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { readPage, textsOf } from '../support/docs.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { upstreamFor } from '../support/upstream.ts';
import { folderWith, launch, PROGRAM } from './run.ts';
import { KEY } from './service-config.ts';
import { lastLine, onSignal, startIn } from './started.ts';

it('a cache that fills up leaves a heap of 64 MiB room for everything else', async (t) => {
  const filling = 'x'.repeat(100_000);
  const upstream = await upstreamFor(t, { '*': (req, res) => void res.end(JSON.stringify([req.url, filling])) });
  const cwd = await folderWith(t, {
    'c.yaml': `version: '1.0'
server: { port: 0, rateLimit: { max: 1000000 } }
apis:
  - name: a
    url: ${upstream.url}
    auth: { type: free }
    cache: { maxAge: 3600000 }
    endpoints: [{ name: e, path: /e, parameters: [{ name: n }] }]
`,
  });
  const args = ['--max-old-space-size=64', PROGRAM, 'start', '-c', 'c.yaml'];
  // Counting what is covered would take more of the heap than the service.
  const env = { SERVICE_PRIVATE_KEY: KEY };
  const running = launch(t, process.execPath, args, { cwd, env });
  const [, url] = await running.output(/listening on (http:\S+)/);
  const [, id] = await running.output(/a\/e (0x\w{64})/);
  const ask = async (n: number) => {
    const body = JSON.stringify({ parameters: { n } });
    const response = await fetch(`${url}/endpoints/${id}`, { method: 'POST', headers: JSON_HEADERS, body });
    await response.arrayBuffer();
    return response.headers.get('cache-status');
  };
  for (let n = 0; n < 500; n++) assert.equal(await ask(n), 'signed-data-proxy; fwd=miss');
  // What was asked for last is kept, and the first had to go.
  assert.match((await ask(499)) ?? '', /^signed-data-proxy; hit; ttl=3[0-9]{3}$/);
  assert.equal(await ask(0), 'signed-data-proxy; fwd=miss');
  assert.equal((await running.stop()).code, 0);
});

it('a heap that is full leaves a snapshot where the recipe of docs/operate.md is followed', async (t) => {
  const [recipe = ''] = textsOf(await readPage('docs/operate.md'), 'text').filter((text) =>
    text.includes('heapsnapshot'),
  );
  const [, options = '', watchdog] = /^NODE_OPTIONS='(.+)' SERVICE_WATCHDOG=(\d+)\n?$/.exec(recipe) ?? [];
  assert.equal(watchdog, '0');
  const folder = await folderWith(t, {});
  const NODE_OPTIONS = `${options.replace('/var/tmp', folder)} --max-old-space-size=128`;
  // Few large objects: of many small ones the snapshot takes long.
  const leak = onSignal('  const kept = [];\n  for (;;) kept.push(Array(10_000).fill(kept.length + 0.5));');
  const running = await startIn(t, leak, { NODE_OPTIONS, SERVICE_WATCHDOG: '0', NODE_V8_COVERAGE: '' });
  await running.output(lastLine);
  running.child.kill('SIGUSR2');
  await running.ended;
  const [snapshot = '', ...others] = await readdir(folder);
  assert.deepEqual([/^Heap\..+\.heapsnapshot$/.test(snapshot), others], [true, []]);
  const { mode, size } = await stat(join(folder, snapshot));
  assert.equal(mode & 0o077, 0);
  assert.ok(size > 1_000_000, String(size));
});
