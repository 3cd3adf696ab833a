/** What a plugin at the stage `statements` cannot have signed, or left out. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const FORGED = `{ name: 'forged', shown: {}, typed: { kind: 'personal', hash: '0x${'ab'.repeat(32)}' } }`;
const PLUGINS = {
  'leaves out the receipt': `() => []`,
  'has a list that checks itself': `(before) => Object.assign([...before, ${FORGED}], { map() { return [...this]; } })`,
  'adds a message': `(before) => [...before, ${FORGED}]`,
};

for (const [what, hook] of Object.entries(PLUGINS))
  it(`a plugin that ${what} is refused, and nothing is signed`, async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json(7) });
    const made = pluginFiles({ p: `export default { name: 'p', setup: () => ({ hooks: { statements: ${hook} } }) };` });
    const config = oneApi(upstream.url, { e: { receipt: true } }, { settings: { plugins: made.plugins } });
    const service = await serviceFor(t, config, { files: made.files });
    await assertRefused(await service.post('api/e'), 500, 'Internal server error');
    assert.match(JSON.stringify(service.logs), /plugin \\"p\\"/);
  });
