import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ContextHolder, ContextKey } from '../../kernel/context-key.ts';

it('a context key of another copy of the SDK says so, and leaves nothing', async () => {
  const copy: { ContextKey: typeof ContextKey } = await import(`../../kernel/context-key.ts?${'copy'}`);
  const holder = new ContextHolder();
  const foreign = new copy.ContextKey<number>('one');
  const message = "the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK";
  assert.throws(() => foreign.set(holder, 1), { message });
  assert.throws(() => foreign.get(holder), { message });
  assert.equal(new ContextKey<number>('one').get(holder), undefined);
});
