/** Reloads that are asked for at once, or while another one is under way, are one. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ReloadQueue } from '../../service/reload.ts';

it('reloads run one after the other, and those that wait to begin are one', async () => {
  const reloads = new ReloadQueue();
  const ran: string[] = [];
  const reload = (name: string) => async () => {
    ran.push(`${name} begins`);
    await setImmediate();
    ran.push(`${name} ends`);
    return name !== 'c';
  };
  const first = [reloads.run(reload('a')), reloads.run(reload('b'))];
  await Promise.resolve().then(() => undefined);
  const next = [reloads.run(reload('c')), reloads.run(reload('d'))];
  assert.deepEqual(await Promise.all([...first, ...next]), [true, true, false, false]);
  assert.deepEqual(ran, ['a begins', 'a ends', 'c begins', 'c ends']);
});
