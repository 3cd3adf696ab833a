import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { JSON_HEADERS } from '../support/http.ts';
import { Scrape } from '../support/metrics.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, launchCli } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';
import { urlOf } from './started.ts';

/** Without it there is no way to make a file full, and to make room in it again, that every user may use. */
export const withoutLimits = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';

/** A service with an audit record; `eth` is encoded, and answers of `all` are as large as their query says. */
export async function startAudited(t: TestContext, audit: string) {
  const upstream = await upstreamFor(t, {
    '/eth': faults.json({ price: 7 }),
    '/all': (req, res, ...rest) => {
      const size = Number(new URL(req.url ?? '', 'http://a').searchParams.get('q'));
      return faults.json({ text: 'x'.repeat(size) })(req, res, ...rest);
    },
  });
  const settings = `settings: { audit: ${audit}, metrics: { port: 0 } }`;
  const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url, settings) });
  const file = join(cwd, 'audit.jsonl');
  const start = async () => {
    const env = { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json' };
    const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env });
    const lines = () => running.written().split('\n');
    const url = await urlOf(running);
    const [, metrics = ''] = await running.output(/metrics on (http:[^"]+)/);
    const { eth, all } = specifications(upstream.url);
    const ask = async (id: string, parameters: object) => {
      const init = { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify({ parameters }) };
      const response = await fetch(`${url}/endpoints/${endpointId(id)}`, init);
      assert.equal(response.status, 200, await response.text());
    };
    return {
      ...running,
      small: () => ask(eth, {}),
      large: (bytes: number) => ask(all, { q: String(bytes) }),
      scrape: async () => new Scrape(await (await fetch(metrics)).text()),
      log: running.written,
      /** Has it get an error when it writes beyond so many bytes of a file, as it would on a full disk. */
      limit: (bytes: number | 'unlimited') => {
        const words = ['--pid', String(running.child.pid), `--fsize=${bytes}:unlimited`];
        assert.equal(spawnSync('prlimit', words).status, 0);
      },
      /** Lines of the log with that message, without what every line has. */
      logged: (message: string) =>
        lines().flatMap((text) => {
          if (!text.includes(message)) return [];
          const { time: _, msg: __, ...fields } = JSON.parse(text);
          return [fields];
        }),
    };
  };
  return { cwd, file, start };
}
