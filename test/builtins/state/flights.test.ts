import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Flights, type Turn } from '../../../builtins/cache/flights.ts';
import { Departure, depart } from '../../../kernel/departure.ts';

const LONG = 60_000;

type Joined = Promise<Turn<string, string> | undefined>;

function rig() {
  const flights = new Flights<string, string>();
  return {
    join: async (patience = LONG, departure = new Departure()): Joined => flights.join('key', patience, departure),
    other: async (): Joined => flights.join('other', LONG, new Departure()),
  };
}

/** The function that ends the work of somebody who leads. */
async function landOf(joined: Joined) {
  const turn = await joined;
  assert.ok(turn !== undefined && 'land' in turn, JSON.stringify(turn));
  return turn.land;
}

/** Whether a promise is settled by now. */
async function isSettled(joined: Joined): Promise<boolean> {
  await sleep(1);
  return (await Promise.race([joined.then(() => true), Promise.resolve(false)])) === true;
}

describe('those who want the same at the same time', () => {
  it('get what the one who leads has got; who comes later leads', async () => {
    const { join, other } = rig();
    const land = await landOf(join());
    const waiting = [join(), join()];
    await landOf(other());
    land({ result: 'r' });
    assert.deepEqual(await Promise.all(waiting), [{ result: 'r' }, { result: 'r' }]);
    await landOf(join());
  });

  it('lead in their order when the one before has left; that is no failure', async () => {
    const { join } = rig();
    let land = await landOf(join());
    const waiting = Array.from({ length: 5 }, () => join());
    for (const next of waiting.slice(0, 4)) {
      land(undefined);
      land = await landOf(next);
    }
    land({ result: 'r' });
    assert.deepEqual(await waiting[4], { result: 'r' });
  });

  it('lead after a first failure, one of them, and share the second', async () => {
    const { join } = rig();
    const first = await landOf(join());
    const [next, ...others] = [join(), join(), join()];
    first({ failure: 'first' });
    const second = await landOf(next as Joined);
    const late = join();
    second({ failure: 'second' });
    assert.deepEqual(await Promise.all(others), [{ failure: 'second' }, { failure: 'second' }]);
    // It has seen but one.
    (await landOf(late))({ result: 'r' });
  });

  it('share a first failure after half of their time', async () => {
    const { join } = rig();
    const land = await landOf(join());
    const waiting = join(20);
    const patient = join();
    await sleep(15);
    land({ failure: 'f' });
    assert.deepEqual(await waiting, { failure: 'f' });
    await landOf(patient);
  });

  it('may leave', async () => {
    const { join } = rig();
    const land = await landOf(join());
    const departure = new Departure();
    const leaving = join(LONG, departure);
    const staying = join();
    depart(departure);
    assert.equal(await leaving, undefined);
    assert.equal(await join(LONG, departure), undefined);
    land(undefined);
    await landOf(staying);
  });

  it('do not wait for ever: after twice their time one more leads, and whoever is first serves all', async () => {
    const { join } = rig();
    const stuck = await landOf(join(10));
    const [next, other] = [join(10), join(LONG)];
    const land = await landOf(next);
    // A failure counts once nobody is left who may succeed.
    land({ failure: 'f' });
    assert.equal(await isSettled(other), false);
    stuck({ result: 'r' });
    assert.deepEqual(await other, { result: 'r' });
  });

  it('are told of the wait that was in vain', async () => {
    const { join } = rig();
    const first = await join();
    assert.ok(first && 'land' in first);
    assert.equal(first.waited, 0);
    const waiting = join();
    await sleep(5);
    first.land(undefined);
    const turn = await waiting;
    assert.ok(turn && 'land' in turn && turn.waited >= 4, JSON.stringify(turn));
  });

  it('count one end of each who leads', async () => {
    const { join } = rig();
    const land = await landOf(join());
    land({ result: 'r' });
    const again = await landOf(join());
    const waiting = join();
    land({ failure: 'late' });
    land(undefined);
    assert.equal(await isSettled(waiting), false);
    again({ result: 's' });
    assert.deepEqual(await waiting, { result: 's' });
  });
});
