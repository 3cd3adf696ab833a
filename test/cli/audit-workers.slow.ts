/** Several workers share an audit record, and tear and lose no line. */
import assert from 'node:assert/strict';
import { readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { untilAudited } from '../support/audit.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launchCli } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';
import { urlOf } from './started.ts';

it('several workers share an audit record that is renamed under them, and tear and lose no line', async (t) => {
  const upstream = await upstreamFor(t, { '/eth': faults.json({ price: 7 }) });
  const settings = 'settings: { audit: { path: audit.jsonl } }';
  const cwd = await folderWith(t, {
    'c.yaml': configText(upstream.url, settings).replace('port: 0', 'port: 0, rateLimit: { max: 100000 }'),
  });
  const words = ['start', '-c', 'c.yaml', '--workers', '3'];
  const running = launchCli(t, words, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  const url = `${await urlOf(running)}/endpoints/${endpointId(specifications(upstream.url).eth)}`;
  await running.output(/3 workers are ready/);
  const asked: string[] = [];
  const client = async () => {
    for (let i = 0; i < 60; i++) {
      // Each connection may go to another worker.
      const headers = { 'Content-Type': 'application/json', Connection: 'close' };
      const response = await fetch(url, { method: 'POST', headers, body: '{}' });
      assert.equal(response.status, 200, await response.text());
      asked.push(response.headers.get('x-request-id') ?? '');
    }
  };
  const asking = Promise.all(Array.from({ length: 8 }, client));
  const file = join(cwd, 'audit.jsonl');
  // As logrotate does it, each time that there are some lines.
  for (const name of ['1', '2', '3']) {
    await untilAudited(file, 40);
    await rename(file, `${file}.${name}`);
  }
  await asking;
  const { code, stdout } = await running.stop();
  assert.equal(code, 0, stdout);
  assert.ok(new Set([...stdout.matchAll(/ 200 .*worker=(\d)/g)].map(([, worker]) => worker)).size > 1);
  const files = (await readdir(cwd)).filter((name) => name.startsWith('audit.jsonl'));
  assert.equal(files.length, 4, files.join(' '));
  const texts = await Promise.all(files.map((name) => readFile(join(cwd, name), 'utf8')));
  // A worker that saw another one's line half written has begun with an empty line.
  const lines = texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
  const ids = lines.map((line) => JSON.parse(line).requestId);
  assert.deepEqual(ids.toSorted(), asked.toSorted());
});
