/** What a plugin at the stage `statements` cannot have signed, or left out. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const FORGED = `{ name: 'forged', shown: {}, typed: { kind: 'personal', hash: '0x${'ab'.repeat(32)}' } }`;
const PLUGINS = {
  'leaves out the receipt': [`() => []`, ''],
  'has a list that checks itself': [`(old) => Object.assign([...old, ${FORGED}], { map() { return [...this]; } })`, ''],
  'adds a message': [`(before) => [...before, ${FORGED}]`, ''],
  'adds a text': ["() => ['a']", 'a statement must be an object {name, shown, typed}'],
  'adds nothing typed': ["() => [{ name: 'a' }]", 'typed must be an object {preimage, data}'],
};

for (const [what, [hook, why = '']] of Object.entries(PLUGINS))
  it(`a plugin that ${what} is refused, and nothing is signed`, async (t) => {
    const p = `export default { name: 'p', setup: () => ({ hooks: { statements: ${hook} } }) };`;
    const more = { answers: { '*': faults.json(7) }, sources: { p } };
    const { service, refused } = await served(t, { e: { receipt: true } }, more);
    await refused(500, 'Internal server error', 'e');
    assert.match(JSON.stringify(service.logs), new RegExp(`plugin \\\\"p\\\\".*${why}`));
  });
