/** The command `try` before answers that no transcript holds. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { upstreamFor } from '../support/upstream.ts';
import { folderWith, runCli } from './run.ts';
import { configText } from './service-config.ts';

const upstream = await upstreamFor(suite);

async function tried(t: TestContext) {
  const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url) });
  return runCli(t, ['try', 'prices/eth', '-c', 'c.yaml'], { cwd });
}

describe('try', () => {
  it('says that an answer is too large', async (t) => {
    upstream.text('/eth', `"${'x'.repeat(1024 * 1024)}"`);
    const why = `too-large: GET ${upstream.url} failed: the answer is larger than 1048576 bytes`;
    const stderr = `error: prices/eth: 502 API call failed (${why})\n`;
    assert.deepEqual(await tried(t), { code: 1, signal: null, stdout: '', stderr });
  });

  it('says what would be refused, and shows nothing to a terminal that it would obey', async (t) => {
    upstream.json('/eth', { price: 'n/a \u001b[2J', list: Array.from({ length: 300 }, (_, i) => i) });
    const { stdout } = await tried(t);
    assert.match(stdout, /\n… \d+ more lines\n\nPATH /);
    assert.match(stdout, /^\$\.list\[2\] +2 +int256 +2\n\$\.price +"n\/a \\u001b\[2J" +string +"n\/a \\u001b\[2J"$/m);
    assert.match(stdout, /\nAs configured, int256 of \$\.price: nothing: .+\n$/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
    assert.doesNotMatch(stdout, /\u001b/);
  });

  it('waits for no background work of plugins, and stops them', async (t) => {
    upstream.json('/eth', { price: 1 });
    const source = `export default { name: 'busy', setup: ({ background }) => ({
        start() { background(new Promise(() => {})); },
        stop() { console.error('stopped'); },
      }) };`;
    const config = configText(upstream.url, 'settings: { plugins: [{ source: ./p.mjs }] }');
    const cwd = await folderWith(t, { 'c.yaml': config, 'p.mjs': source });
    const startedAt = performance.now();
    const { code, stderr } = await runCli(t, ['try', 'prices/eth', '-c', 'c.yaml'], { cwd });
    assert.deepEqual([code, stderr], [0, 'stopped\n']);
    assert.ok(performance.now() - startedAt < 20_000, 'a drain takes 25 s');
  });
});
