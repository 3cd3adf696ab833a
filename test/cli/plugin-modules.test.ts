import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startUpstream } from '../support/upstream.ts';
import { configText } from './service-config.ts';
import { startIn, urlOf } from './started.ts';

/** Reads what a built-in has left in a slot of the SDK: nobody finds it there with another copy of the SDK. */
const SOURCE = `
import { definePlugin, resolvedParameters } from 'signed-data-proxy/plugins-sdk';
const lookup = (parameters, exchange) => {
  console.error(JSON.stringify(resolvedParameters.get(exchange)?.values));
};
export default definePlugin({ name: 'p', setup: () => ({ hooks: { lookup } }) });
`;

describe('a plugin of a service from source', { concurrency: 2 }, () => {
  for (const [name, source] of [
    ['p.mjs', SOURCE],
    ['by-itself.mjs', SOURCE.replace('signed-data-proxy/plugins-sdk', 'signed-data-proxy-plugins-sdk')],
    ['p.ts', SOURCE.replace('(parameters, exchange)', '(parameters: any, exchange: any)')],
  ] as const) {
    it(`shares the SDK with it: ${name}`, async (t) => {
      const upstream = await startUpstream({ '*': (_, res) => void res.end('{"price":1}') });
      t.after(() => upstream.close());
      const config = configText(upstream.url, `settings: { plugins: [{ source: ./${name} }] }`);
      const running = await startIn(t, { 'c.yaml': config, [name]: source });
      const [, id] = await running.output(/prices\/all (0x\w+)/);
      const body = JSON.stringify({ parameters: { q: 'left' } });
      const headers = { 'Content-Type': 'application/json' };
      const { status } = await fetch(`${await urlOf(running)}/endpoints/${id}`, { method: 'POST', headers, body });
      assert.equal(status, 200);
      running.child.kill('SIGTERM');
      const { code, stderr } = await running.ended;
      assert.deepEqual([code, stderr], [0, '["left"]\n']);
    });
  }
});
