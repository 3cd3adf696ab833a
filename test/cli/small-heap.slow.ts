import assert from 'node:assert/strict';
import { it } from 'node:test';
import { JSON_HEADERS } from '../support/http.ts';
import { startUpstream } from '../support/upstream.ts';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';
import { KEY } from './service-config.ts';

it('a cache that fills up leaves a heap of 64 MiB room for everything else', async (t) => {
  const filling = 'x'.repeat(100_000);
  const upstream = await startUpstream({ '*': (req, res) => void res.end(JSON.stringify([req.url, filling])) });
  t.after(() => upstream.close());
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
  const args = ['--max-old-space-size=64', `${PACKAGE_ROOT}/cli/bin.js`, 'start', '-c', 'c.yaml'];
  // Counting what is covered would take more of the heap than the service.
  const env = { SERVICE_PRIVATE_KEY: KEY, NODE_V8_COVERAGE: '' };
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
  running.child.kill('SIGTERM');
  assert.equal((await running.ended).code, 0);
});
