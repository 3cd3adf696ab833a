/** A context key is of one copy of the SDK, and its values go with a request. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Exchange } from '../../kernel/exchange.ts';
import { ContextKey } from '../../plugins-sdk/context-key.ts';

const newExchange = () =>
  new Exchange({ requestId: '0x01', method: 'POST', route: '/', headers: {}, socketAddress: '' });

it('a context key of another copy of the SDK says so, and leaves nothing', async () => {
  const copy: { Exchange: typeof Exchange } = await import(`../../kernel/exchange.ts?${'copy'}`);
  const foreign = new copy.Exchange({ requestId: '0x01', method: 'POST', route: '/', headers: {}, socketAddress: '' });
  const message = "the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK";
  assert.throws(() => new ContextKey<number>('one').set(foreign, 1), { message });
  assert.throws(() => new ContextKey<number>('one').get(foreign), { message });
});

it('what is logged stands on the request that a fork was made of, and yields to fields that are there', () => {
  const tier = new ContextKey<string>('tier', { logged: true });
  const [status, quiet] = [new ContextKey('status', { logged: true }), new ContextKey('quiet')];
  const request = newExchange();
  const first = new Exchange(request, request);
  const fork = new Exchange(first, first);
  tier.set(request, 'silver');
  tier.set(fork, 'gold');
  status.set(fork, 1);
  quiet.set(fork, 1);
  assert.equal(tier.get(request), 'gold');
  assert.equal(quiet.get(request), undefined);
  const fields: Record<string, unknown> = { status: 200 };
  ContextKey.addLogged(request, fields);
  assert.deepEqual(fields, { status: 200, tier: 'gold' });
});
