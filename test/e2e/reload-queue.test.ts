/** Reloads that are asked for at once, or while another one is under way, are one. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { reloadQueue } from '../../service/reload.ts';

it('reloads run one after the other, and those that wait to begin are one', async () => {
  const queue = reloadQueue();
  const ran: string[] = [];
  const reload = (name: string) => async () => {
    ran.push(`${name} begins`);
    await setImmediate();
    ran.push(`${name} ends`);
    return name !== 'c';
  };
  const first = [queue(reload('a')), queue(reload('b'))];
  await Promise.resolve().then(() => undefined);
  const next = [queue(reload('c')), queue(reload('d'))];
  assert.deepEqual(await Promise.all([...first, ...next]), [true, true, false, false]);
  assert.deepEqual(ran, ['a begins', 'a ends', 'c begins', 'c ends']);
});
