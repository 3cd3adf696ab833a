import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Joined, SingleFlight } from '../../../builtins/cache/single-flight.ts';
import { abort, ClientSignal } from '../../../kernel/client-signal.ts';

const LONG = 60_000;

type Joining = Promise<Joined<string, string> | undefined>;

function rig() {
  const flight = new SingleFlight<string, string>();
  return {
    join: async (timeout = LONG, client = new ClientSignal()): Joining => flight.join('key', timeout, client),
    other: async (): Joining => flight.join('other', LONG, new ClientSignal()),
  };
}

async function leaderOf(joining: Joining) {
  const joined = await joining;
  assert.ok(joined !== undefined && 'settle' in joined, JSON.stringify(joined));
  return joined;
}

/** The function that ends the work of somebody who leads. */
async function settleOf(joining: Joining) {
  return (await leaderOf(joining)).settle;
}

/** Whether a promise is settled by now. */
async function isSettled(joining: Joining): Promise<boolean> {
  await sleep(1);
  return (await Promise.race([joining.then(() => true), Promise.resolve(false)])) === true;
}

describe('those who want the same at the same time', () => {
  it('get what the one who leads has got; who comes later leads', async () => {
    const { join, other } = rig();
    const settle = await settleOf(join());
    const waiting = [join(), join()];
    await settleOf(other());
    settle({ result: 'r' });
    assert.deepEqual(await Promise.all(waiting), [{ result: 'r' }, { result: 'r' }]);
    await settleOf(join());
  });

  it('lead in their order when the one before has left; that is no failure', async () => {
    const { join } = rig();
    let settle = await settleOf(join());
    const waiting = Array.from({ length: 5 }, () => join());
    for (const next of waiting.slice(0, 4)) {
      settle(undefined);
      settle = await settleOf(next);
    }
    settle({ result: 'r' });
    assert.deepEqual(await waiting[4], { result: 'r' });
  });

  it('lead after a first failure, one of them, and share the second', async () => {
    const { join } = rig();
    const first = await settleOf(join());
    const [next, ...others] = [join(), join(), join()];
    first({ failure: 'first' });
    const second = await settleOf(next as Joining);
    const late = join();
    second({ failure: 'second' });
    assert.deepEqual(await Promise.all(others), [{ failure: 'second' }, { failure: 'second' }]);
    // It has seen but one.
    (await settleOf(late))({ result: 'r' });
  });

  it('share a first failure after half of their time', async () => {
    const { join } = rig();
    const settle = await settleOf(join());
    const waiting = join(2000);
    const patient = join();
    await sleep(1100);
    settle({ failure: 'f' });
    assert.deepEqual(await waiting, { failure: 'f' });
    await settleOf(patient);
  });

  it('may leave', async () => {
    const { join } = rig();
    const settle = await settleOf(join());
    const client = new ClientSignal();
    const leaving = join(LONG, client);
    const staying = join();
    abort(client);
    assert.equal(await leaving, undefined);
    assert.equal(await join(LONG, client), undefined);
    settle(undefined);
    await settleOf(staying);
  });

  it('do not wait for a call that does not begin: one more leads, and whoever is first serves all', async () => {
    const { join } = rig();
    const stuck = await settleOf(join(2000));
    const [next, other, patient] = [join(2000), join(2000), join(LONG)];
    const settle = await settleOf(next);
    settle({ failure: 'f' });
    // A failure counts once nobody is left who may succeed, or the deadline is over.
    assert.deepEqual(await other, { failure: 'f' });
    assert.equal(await isSettled(patient), false);
    stuck({ result: 'r' });
    assert.deepEqual(await patient, { result: 'r' });
  });

  it('do not ask beside a leader that has its answer, and wait until it is finished', async () => {
    const { join } = rig();
    const leader = await leaderOf(join(20));
    leader.answered();
    const waiting = [join(20), join(20)];
    await sleep(60);
    assert.deepEqual(await Promise.all(waiting.map(isSettled)), [false, false]);
    leader.settle({ result: 'r' });
    assert.deepEqual(await Promise.all(waiting), [{ result: 'r' }, { result: 'r' }]);
  });

  it('of which it is too late for some: these end when the leader with the answer leaves, the others go on', async () => {
    const { join } = rig();
    const leader = await leaderOf(join(20));
    leader.answered();
    const late = join(20);
    await sleep(60);
    const next = join(LONG);
    leader.settle(undefined);
    const outcome = await late;
    assert.ok(outcome && 'timedOut' in outcome && outcome.waited >= 40, JSON.stringify(outcome));
    (await leaderOf(next)).settle({ result: 'r' });
  });

  it('have a deadline, whoever leads meanwhile: nobody is made to call when there is no time left', async () => {
    const { join } = rig();
    const leave = async (joining: Joining) => {
      const joined = await joining;
      if (joined === undefined || !('settle' in joined)) return;
      await sleep(90);
      joined.settle(undefined);
    };
    const leaders = [join(100), ...Array.from({ length: 8 }, () => join(100))].map(leave);
    const victim = await join(100);
    assert.ok(victim && 'timedOut' in victim, JSON.stringify(victim));
    await Promise.all(leaders);
    (await leaderOf(join(100))).settle(undefined);
  });

  it('are told of the wait that was in vain', async () => {
    const { join } = rig();
    const first = await leaderOf(join());
    assert.equal(first.waited, 0);
    const waiting = join();
    await sleep(5);
    first.settle(undefined);
    const { waited } = await leaderOf(waiting);
    assert.ok(waited >= 4, String(waited));
  });

  it('count one end of each who leads', async () => {
    const { join } = rig();
    const settle = await settleOf(join());
    settle({ result: 'r' });
    const again = await settleOf(join());
    const waiting = join();
    settle({ failure: 'late' });
    settle(undefined);
    assert.equal(await isSettled(waiting), false);
    again({ result: 's' });
    assert.deepEqual(await waiting, { result: 's' });
  });
});
