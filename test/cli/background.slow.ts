/** Work in the background that never ends is cut off with the drain, and named. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { background } from '../support/background.ts';
import { configText } from './service-config.ts';
import { postTo, startIn } from './started.ts';

it('work in the background that never ends is cut off with the drain, and the log says whose', async (t) => {
  const config = configText(undefined, 'settings: { plugins: [{ source: ./p.mjs }] }');
  const { output, stop } = await startIn(t, {
    'c.yaml': config,
    ...background('await new Promise(() => {});'),
  });
  const [, url] = await output(/listening on (http:\/\/\S+)/);
  const [, id] = await output(/prices\/eth (0x\w+)/);
  for (let count = 0; count < 2; count++) assert.equal((await postTo(url, id)).status, 403);
  const { code, stdout } = await stop();
  assert.equal(code, 0);
  const lines = stdout.split('\n').flatMap((line) => /(?:ERROR|WARN) .*cut off.*/.exec(line) ?? []);
  assert.deepEqual(lines, Array(2).fill('ERROR plugin "p": work in the background was cut off'));
});
