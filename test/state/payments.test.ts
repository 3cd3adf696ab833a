/** Payments in a server are redeemed once. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { Payments } from '../../builtins/shared/payments.ts';
import type { StateArea } from '../../plugins-sdk/state.ts';
import { suite } from '../support/lifetime.ts';
import { paymentsOn, steps, ticketOf } from '../support/payments.ts';
import { retried } from '../support/wait.ts';
import { type Cut, CuttingProxy } from './redis-proxy.ts';
import { describeServers, openEngine, redisFor } from './redis-server.ts';

const LIFE = 900_000;

/** The steps of a paid request, as far as payments go. */
type Step = 'hold' | 'redeem' | 'giveBack';
const STEPS: readonly Step[] = ['hold', 'redeem', 'giveBack'];

describeServers('payments in a server', async (program) => {
  const server = await redisFor(suite, program);

  const open = async (t: TestContext, url = server.url): Promise<StateArea> => {
    const { engine } = openEngine({ url });
    t.after(() => engine.close());
    await engine.start();
    return engine.area('payments');
  };
  let names = 0;
  const name = () => `0x${(++names).toString(16).padStart(64, '0')}`;

  const isFree = async (payments: Payments, payment: string) =>
    (await payments.find(payment)).every(({ by }) => by === undefined);

  /** Whether a payment that was given back can be used, by one of many. */
  async function isUsedOnce(replicas: readonly Payments[], payment: string): Promise<void> {
    const races = Array.from({ length: 16 }, async (_, index) => {
      const payments = replicas[index % replicas.length] ?? assert.fail('no replica');
      const request = steps(payments, ticketOf(payment), LIFE);
      return (await request.hold()) && request.redeem();
    });
    assert.equal((await Promise.all(races)).filter(Boolean).length, 1, payment);
  }

  for (const cut of ['request', 'reply', 'after'] as const satisfies readonly Cut[])
    for (const step of STEPS)
      for (const command of ['get', 'eval'])
        it(`are sold once when the connection is cut at ${step}, ${command} (${cut})`, async (t) => {
          const proxy = await CuttingProxy.start(t, server.port);
          const payments = paymentsOn(await open(t, proxy.url));
          const other = paymentsOn(await open(t));
          const ticket = ticketOf(name());
          const request = steps(payments, ticket, LIFE);
          for (const earlier of STEPS.slice(0, STEPS.indexOf(step))) assert.equal(await request[earlier](), true);
          proxy.cutAt(cut, command);
          await request[step]().catch(() => undefined);
          // What a request does that got no answer: it gives back until that is done.
          await (step === 'giveBack' ? request.giveBack() : request.release());
          for (const one of [payments, other]) await retried(async () => assert.ok(await isFree(one, ticket.payment)));
          await isUsedOnce([payments, other], ticket.payment);
        });

  it('are sold once while the server is killed at every step', async (t) => {
    const own = await redisFor(t, program);
    const [one, other] = [paymentsOn(await open(t, own.url)), paymentsOn(await open(t, own.url))];
    for (const step of STEPS) {
      const ticket = ticketOf(name());
      const request = steps(one, ticket, LIFE);
      for (const earlier of STEPS.slice(0, STEPS.indexOf(step) + 1)) {
        if (earlier === step) await own.kill();
        await request[earlier]().catch(() => undefined);
      }
      await own.run();
      if (step !== 'giveBack') await request.release();
      await retried(async () => assert.ok(await isFree(other, ticket.payment)));
      await isUsedOnce([one, other], ticket.payment);
    }
  });

  it('are sold once when a redemption stands still in the server, and the request gives up meanwhile', async (t) => {
    const own = await redisFor(t, program);
    const [one, other] = [paymentsOn(await open(t, own.url)), paymentsOn(await open(t, own.url))];
    const ticket = ticketOf(name());
    const request = steps(one, ticket, LIFE);
    assert.equal(await request.hold(), true);
    own.signal('SIGSTOP');
    const redeemed = request.redeem().catch(() => undefined);
    const released = request.release();
    own.signal('SIGCONT');
    await Promise.all([redeemed, released]);
    await isUsedOnce([one, other], ticket.payment);
  });

  it('are not sold by a server that has no room, and given back', async (t) => {
    const own = await redisFor(t, program);
    const area = await open(t, own.url);
    const ticket = ticketOf(name());
    const request = steps(paymentsOn(area), ticket, LIFE);
    assert.equal(await request.hold(), true);
    await own.command('CONFIG', 'SET', 'maxmemory', '1');
    await assert.rejects(request.redeem(), /OOM/);
    await request.release();
    assert.equal(await area.get(ticket.payment), undefined);
  });
});
