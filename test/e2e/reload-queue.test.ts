/** Reloads that are asked for at once, or while another one is under way, are one. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { beforeEach, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { reloadQueue } from '../../service/reload.ts';
import { notes } from '../support/plugin-files.ts';
import { reload, reloadable, startTagged, TAGGED, withTag } from '../support/reload.ts';
import { startTestService, TEST_KEY } from '../support/service.ts';
import { inTime } from '../support/wait.ts';

const { config, arrived, release } = await reloadable();

beforeEach(() => notes.clear());

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

it('ten at once: one is done for all of them', async () => {
  const service = await startTestService(config({ a: {} }, withTag('x')), TAGGED);
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => reload(service)));
  assert.deepEqual(new Set(outcomes.map(({ done }) => done)), new Set([true]));
  const started = notes.of('start');
  assert.equal(new Set(started).size, 2);
  assert.deepEqual(await notes.until('stop', 1), started.slice(0, 1));
  await service.stop();
  assert.deepEqual(notes.of('stop'), notes.of('start'));
});

it('ten, one by one: every set of plugins but the last is stopped, each once', async () => {
  const service = await startTestService(config({ a: {} }, withTag('x')), TAGGED);
  for (let count = 0; count < 10; count++) assert.equal((await reload(service)).done, true);
  const started = notes.of('start');
  assert.equal(new Set(started).size, 11);
  assert.deepEqual(await notes.until('stop', 10), started.slice(0, 10));
  await service.stop();
  assert.deepEqual(notes.of('stop'), notes.of('start'));
});

it('two, while one is under way: one more is done, with variables that are read after it', async (t) => {
  const service = await startTagged(t, config({ a: {} }));
  const read: number[] = [];
  const events = new EventEmitter();
  const asked = (number: number, wait: Promise<unknown>) =>
    service.reload(async () => {
      read.push(number);
      events.emit('begun');
      await wait;
      return { SERVICE_PRIVATE_KEY: TEST_KEY };
    });
  const begun = once(events, 'begun');
  const outcomes = [asked(1, once(events, 'go on'))];
  await inTime(begun, 'the reload to begin');
  outcomes.push(asked(2, Promise.resolve()), asked(3, Promise.resolve()));
  assert.deepEqual(read, [1]);
  events.emit('go on');
  assert.deepEqual(await Promise.all(outcomes), [true, true, true]);
  assert.deepEqual(read, [1, 2]);
});

it('while the service stops there is none', async () => {
  const service = await startTestService(config({ held: {} }));
  const answer = service.post('api/held');
  await arrived(1);
  const stopped = service.stop();
  assert.deepEqual(await reload(service), { done: false, lines: [] });
  release();
  assert.equal((await answer).status, 200);
  await stopped;
  assert.equal(await service.reload(() => ({ SERVICE_PRIVATE_KEY: TEST_KEY })), false);
});

it('one that is under way when the service stops is given up, and what it started is stopped', async () => {
  let open = () => {};
  Reflect.set(globalThis, 'testGate', new Promise<void>((resolve) => (open = resolve)));
  const service = await startTestService(config({ a: {} }, withTag('old')), TAGGED);
  const reloading = reload(service, config({ a: {} }, withTag('new', { delay: true })));
  await notes.until('start', 2);
  const stopped = service.stop();
  open();
  assert.equal((await reloading).done, false);
  await stopped;
  assert.deepEqual(notes.of('stop').toSorted(), notes.of('start').toSorted());
  assert.ok(!service.logs.some(({ level }) => level === 'error'));
});
