/** A mode that answers without a run settles as refused, once. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { notes, pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';

const deliveries = {
  answers: '() => ({ status: 200, headers: { "Content-Type": "text/plain" }, body: "mine" })',
  streams:
    '() => ({ status: 200, headers: { "Content-Type": "text/plain" }, body: (async function* () { yield "mine"; })() })',
};

for (const [how, present] of Object.entries(deliveries)) {
  it(`a mode that ${how} without a run settles as refused, once`, async (t) => {
    const idle = `export default { name: 'idle', modes: ['idle'], setup: () => ({ hooks: {
      present: { idle: ${present} }, concluded: ({ kind }) => globalThis.testNote('${how}', kind) } }) };`;
    const { files, plugins } = pluginFiles({ idle });
    const config = oneApi('http://a.invalid', { e: { mode: 'idle' } }, { settings: { plugins } });
    const service = await serviceFor(t, config, { files });
    for (const kinds of [['refused'], ['refused', 'refused']]) {
      const response = await service.post('api/e');
      assert.deepEqual([response.status, await response.text()], [200, 'mine']);
      assert.deepEqual(await notes.until(how, kinds.length), kinds);
    }
  });
}
