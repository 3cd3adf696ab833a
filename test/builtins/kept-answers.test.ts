/** Where all room for identifiers is taken, their payers are told so, and no operator is. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Entry, KeptAnswers } from '../../builtins/auth-x402-exact/kept-answers.ts';
import type { Payment } from '../../builtins/auth-x402-exact/payload.ts';
import { MemoryArea } from '../../plugins-sdk/index.ts';

it('an identifier for which there is no room is 429, and no fault of the service', async () => {
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const kept = new KeptAnswers({ area: new MemoryArea({ capacity: 1 }), isInMemory: true, log });
  const entryOf = (from: string, id: string) => {
    const authorization = { from, nonce: '0x1' };
    const requirements = { network: 'eip155:1', asset: '0x1' };
    const payment = { authorization, requirements, signature: '0x', endsAt: Date.now() + 60_000 };
    return new Entry(kept, payment as unknown as Payment, `${from} ${id}`, Date.now());
  };
  assert.equal(await entryOf('0xa', 'one').claim(), true);
  const refused = { status: 429, message: 'Too many payments with an identifier — slow down', fault: false };
  await assert.rejects(entryOf('0xb', 'one').claim(), { ...refused, headers: { 'Retry-After': '60' } });
  await entryOf('0xa', 'one').drop();
  assert.equal(await entryOf('0xa', 'two').claim(), true);
});
