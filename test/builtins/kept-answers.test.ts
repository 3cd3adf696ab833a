/** Where all room for identifiers is taken, payers buy all the same: their answers are not kept. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Entry } from '../../builtins/auth-x402-exact/kept-answers.ts';
import type { Payment } from '../../builtins/auth-x402-exact/payload.ts';
import type { Exchange, SignedResponse } from '../../plugins-sdk/index.ts';
import { MemoryArea } from '../../plugins-sdk/state.ts';

it('a full table refuses no payment, whose answer is not kept then', async () => {
  const lines: string[] = [];
  const line = (message: string) => void lines.push(message);
  const log = { debug: line, info: line, warn: line, error: line };
  const area = new MemoryArea({ capacity: 1 });
  const room = { area, isInMemory: true, log };
  const entryOf = (from: string, id: string) => {
    const authorization = { from, nonce: '0x1' };
    const requirements = { network: 'eip155:1', asset: '0x1' };
    const payment = { authorization, requirements, signature: '0x', endsAt: Date.now() + 60_000 };
    return new Entry(room, payment as unknown as Payment, id, Date.now());
  };
  assert.equal(await entryOf('0xa', 'one').claim(), true);
  const second = entryOf('0xb', 'one');
  assert.equal(await second.claim(), true);
  await second.keep({ json: '{}' } as unknown as SignedResponse, '', { requestId: '0x1' } as unknown as Exchange);
  assert.deepEqual([await second.find(), area.size, lines], [undefined, 1, []]);
  await entryOf('0xa', 'one').drop();
  // The bucket of the first payer takes all room for buckets: a second payer has no share either.
  const third = entryOf('0xb', 'two');
  assert.equal(await third.claim(), true);
  assert.deepEqual([area.size, lines], [0, []]);
});
