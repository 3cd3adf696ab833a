/** A mode that may repeat runs the rest of the pipeline again, and others may not. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const cases: readonly [modes: string, status: number, calls: number][] = [
  ['{ twice: { repeats: true } }', 200, 2],
  ['{ twice: {} }', 500, 1],
  ["['twice']", 500, 1],
];

for (const [modes, status, calls] of cases) {
  it(`a mode declared as ${modes} runs the rest of the pipeline again: ${status}`, async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/e', { a: 1 });
    const twice = `export default { name: 'twice', modes: ${modes}, setup: () => ({ hooks: { present: {
      twice: async (run) => { await run(); return { status: 200, body: await run() }; } } } }) };`;
    const { files, plugins } = pluginFiles({ twice });
    const config = oneApi(upstream.url, { e: { mode: 'twice' } }, { settings: { plugins } });
    const service = await serviceFor(t, config, { files });
    const response = await service.post('api/e');
    await response.text();
    assert.deepEqual([response.status, upstream.requests.length], [status, calls]);
  });
}
