/** Payments in a server are redeemed once. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { Payments, ticketFor } from '../../builtins/shared/payments.ts';
import type { StateArea } from '../../plugins-sdk/state/area.ts';
import { suite } from '../support/lifetime.ts';
import { type Cut, CuttingProxy } from './redis-proxy.ts';
import { describeServers, eventually, openEngine, redisFor } from './redis-server.ts';

const LEASE = 40_000;
const LIFE = 900_000;

/** The steps of a paid request, as far as payments go. */
type Step = 'reserve' | 'confirm' | 'refund';
const STEPS: readonly Step[] = ['reserve', 'confirm', 'refund'];

describeServers('payments in a server', async (program) => {
  const server = await redisFor(suite, program);

  const open = async (t: TestContext, url = server.url): Promise<StateArea> => {
    const { engine } = openEngine({ url });
    t.after(() => engine.close());
    await engine.start();
    return engine.area('payments');
  };
  let names = 0;
  const name = () => `0x${(++names).toString(16)}`;

  /** Whether a payment that was given back can be used, by one of many. */
  async function isUsedOnce(replicas: readonly Payments[], payment: string): Promise<void> {
    const races = Array.from({ length: 16 }, async (_, index) => {
      const payments = replicas[index % replicas.length] ?? assert.fail('no replica');
      const ticket = ticketFor(payment);
      return (await payments.reserve(ticket, LEASE)) === undefined && payments.confirm(ticket, LIFE);
    });
    assert.equal((await Promise.all(races)).filter(Boolean).length, 1, payment);
  }

  for (const cut of ['request', 'reply', 'after'] as const satisfies readonly Cut[])
    for (const step of STEPS)
      it(`are sold once when the connection is cut at ${step} (${cut})`, async (t) => {
        const proxy = await CuttingProxy.start(t, server.port);
        const payments = new Payments(await open(t, proxy.url));
        const other = new Payments(await open(t));
        const ticket = ticketFor(name());
        const reserve = async () => (await payments.reserve(ticket, LEASE)) === undefined;
        const run = { reserve, confirm: () => payments.confirm(ticket, LIFE) };
        const steps = { ...run, refund: () => payments.refund(ticket, LIFE, true) };
        for (const earlier of STEPS.slice(0, STEPS.indexOf(step))) assert.equal(await steps[earlier](), true, earlier);
        proxy.cutAt(cut);
        const went = await steps[step]().then(
          () => true,
          () => false,
        );
        // A refund is more than one command: the next one is cut off.
        assert.equal(went, cut === 'after' && step !== 'refund');
        // What a request does that got no answer: it gives back until that is done.
        if (step === 'refund') await eventually(() => payments.refund(ticket, LIFE, true));
        else await eventually(() => payments.release(ticket));
        await isUsedOnce([payments, other], ticket.payment);
      });

  it('are sold once while the server is killed at every step', async (t) => {
    const own = await redisFor(t, program);
    const [one, other] = [new Payments(await open(t, own.url)), new Payments(await open(t, own.url))];
    for (const step of STEPS) {
      const ticket = ticketFor(name());
      for (const earlier of STEPS.slice(0, STEPS.indexOf(step) + 1)) {
        if (earlier === step) await own.kill();
        const steps = {
          reserve: () => one.reserve(ticket, LEASE),
          confirm: () => one.confirm(ticket, LIFE),
          refund: () => one.refund(ticket, LIFE, true),
        };
        await steps[earlier]().catch(() => undefined);
      }
      await own.run();
      if (step === 'refund') await eventually(() => one.refund(ticket, LIFE, true));
      else await eventually(() => one.release(ticket));
      await eventually(() => other.release(ticketFor(name())));
      await isUsedOnce([one, other], ticket.payment);
    }
  });

  it('are sold once when a confirmation stands still in the server, and the request gives up meanwhile', async (t) => {
    const own = await redisFor(t, program);
    const [one, other] = [new Payments(await open(t, own.url)), new Payments(await open(t, own.url))];
    const ticket = ticketFor(name());
    assert.equal(await one.reserve(ticket, LEASE), undefined);
    own.signal('SIGSTOP');
    const confirmed = one.confirm(ticket, LIFE).catch(() => undefined);
    const released = one.release(ticket);
    own.signal('SIGCONT');
    await Promise.all([confirmed, released]);
    await isUsedOnce([one, other], ticket.payment);
  });

  it('whose holder is taken for dead are sold to who takes over, and not to the holder', async (t) => {
    const [one, other] = [new Payments(await open(t)), new Payments(await open(t))];
    const payment = name();
    const [first, second] = [ticketFor(payment), ticketFor(payment)];
    assert.equal(await one.reserve(first, 50), undefined);
    await eventually(async () =>
      assert.equal(await other.reserve(second, LEASE), undefined, 'the lease has not ended'),
    );
    assert.equal(await one.confirm(first, LIFE), false);
    await one.release(first);
    assert.equal(await other.confirm(second, LIFE), true);
    assert.equal(await one.refund(first, LIFE, false), false);
  });

  it('are not sold by a server that has no room, and given back', async (t) => {
    const own = await redisFor(t, program);
    const area = await open(t, own.url);
    const payments = new Payments(area);
    const ticket = ticketFor(name());
    assert.equal(await payments.reserve(ticket, LEASE), undefined);
    await own.command('CONFIG', 'SET', 'maxmemory', '1');
    await assert.rejects(payments.confirm(ticket, LIFE), /OOM/);
    await payments.release(ticket);
    assert.equal(await area.get(ticket.payment), undefined);
  });
});
