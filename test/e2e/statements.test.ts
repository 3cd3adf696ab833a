/** What a plugin at the stage `statements` cannot have signed, or left out. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const FORGED = `{ name: 'forged', shown: {}, typed: { kind: 'personal', hash: '0x${'ab'.repeat(32)}' } }`;
const PLUGINS = {
  'leaves out the receipt': `() => []`,
  'has a list that checks itself': `(before) => Object.assign([...before, ${FORGED}], { map() { return [...this]; } })`,
  'adds a message': `(before) => [...before, ${FORGED}]`,
};

for (const [what, hook] of Object.entries(PLUGINS))
  it(`a plugin that ${what} is refused, and nothing is signed`, async (t) => {
    const p = `export default { name: 'p', setup: () => ({ hooks: { statements: ${hook} } }) };`;
    const more = { answers: { '*': faults.json(7) }, sources: { p } };
    const { service, refused } = await served(t, { e: { receipt: true } }, more);
    await refused(500, 'Internal server error', 'e');
    assert.match(JSON.stringify(service.logs), /plugin \\"p\\"/);
  });
