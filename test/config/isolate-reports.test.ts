/** Messages of an isolated plugin arrive whole and in order, and bad ones end it. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { FrameSplitter } from '../../config/plugins/isolate/frames.ts';
import { PluginHost } from '../../config/plugins/isolate/host.ts';
import type { Report } from '../../config/plugins/isolate/protocol.ts';
import { ReportReader } from '../../config/plugins/isolate/reports.ts';
import { SentJson } from '../../plugins-sdk/results/plain.ts';
import { resultOf, speaker } from '../support/isolated-speaker.ts';

/** Two processes that say what the script of a call has them say. */
async function speaking(t: TestContext, budget = 20_000, more = '') {
  const isolate = new PluginHost({
    bundle: { code: speaker + more, locate: (text) => text },
    memory: 128,
    config: undefined,
    budget,
    patience: 20_000,
    line: () => undefined,
    log: () => undefined,
    count: () => undefined,
  });
  t.after(() => isolate.stop());
  await isolate.start();
  return async (script: string) => dataOf(await isolate.call('onError', { script }));
}

/** What {@link resultOf} says, as the service has it. */
function dataOf(result: unknown): unknown {
  if (result === undefined) return undefined;
  const { data } = result as { readonly data: unknown };
  return data instanceof SentJson ? JSON.parse(data.text) : data;
}

const UNASKED = 'it reported what nobody has asked for';
const NONSENSE = 'it sent a frame that makes no sense';
const NO_CALL = 'it reported of a call that it does not have';

const wrong: Readonly<Record<string, readonly [script: string, reason: string]>> = {
  'a "parsed" that nobody waits for': [`say({ k: 'parsed', more: 'x'.repeat(900_000) })`, UNASKED],
  'a second "loaded"': [`say({ k: 'loaded' })`, UNASKED],
  'a second "made"': [`say({ k: 'made' })`, UNASKED],
  'a failure of nothing': [`say({ k: 'failed', error: { message: 'x', stack: 'x' } })`, UNASKED],
  'something unknown': [`say({ k: 'what' })`, UNASKED],
  'a pong without a ping': [`say({ k: 'pong' })`, 'it answered a ping that was not sent'],
  'the result of a call that was not made': [`say({ k: 'done', i: id + 1 })`, NO_CALL],
  'a result twice': [`say({ k: 'watch', i: id }); say({ k: 'done', i: id }); say({ k: 'done', i: id })`, NO_CALL],
  'a watch of a call that is over': [`say({ k: 'done', i: id }); say({ k: 'watch', i: id })`, NO_CALL],
  'two watches of one call': [
    `say({ k: 'watch', i: id }); say({ k: 'watch', i: id })`,
    'it asked twice for the signal of a call',
  ],
  'that it leaves a call to nobody': [
    `say({ k: 'skipped', i: id })`,
    'it left a call to another process, and there is none',
  ],
  'an id that is no number': [`say({ k: 'done', i: '1' })`, NONSENSE],
  'no id': [`say({ k: 'watch' })`, NONSENSE],
  'an error whose text is none': [`say({ k: 'threw', i: id, text: { length: 1 } })`, NONSENSE],
  'a memo that is no text': [`say({ k: 'done', i: id, m: {} })`, 'it sent a memo that is none'],
  'a memo that is no object': [`say({ k: 'done', i: id, m: '[]' })`, 'it sent a memo that is none'],
  'a memo that is too long': [
    `say({ k: 'done', i: id, m: '{"a":"' + 'x'.repeat(4089) + '"}' })`,
    'it sent a memo that is none',
  ],
  'a memo that is no JSON': [`say({ k: 'done', i: id, m: '{' })`, 'it sent a frame that is no JSON'],
  'a list': [`write(frame('[]'))`, NONSENSE],
  'no JSON': [`write(frame('{'))`, 'it sent a frame that is no JSON'],
  'no JSON at length': [`write(frame('['.repeat(4_000_000)))`, 'it sent a frame that is no JSON'],
};

for (const [what, [script, reason]] of Object.entries(wrong)) {
  test(`a process that reports ${what} is ended`, async (t) => {
    const call = await speaking(t);
    const waiting = call('');
    const answered = /k: 'done', i: id }/.test(script);
    const said = call(script);
    if (answered) await said;
    else await assert.rejects(said, { stack: new RegExp(`^the process of the plugin has ended: ${reason}`) });
    await assert.rejects(waiting, { stack: `the process of the plugin has ended: ${reason}` });
    assert.equal(await call(`say(${resultOf('1')})`), 1);
  });
}

const token = Buffer.alloc(16, 7);

function framed(body: Buffer): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(16 + body.length);
  return Buffer.concat([head, token, body]);
}

test('frames arrive whole, however they were cut', () => {
  const bodies = fc.array(fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)));
  fc.assert(
    fc.property(bodies, fc.infiniteStream(fc.integer({ min: 1, max: 50 })), (sent, sizes) => {
      const splitter = new FrameSplitter(token);
      const bytes = Buffer.concat(sent.map(framed));
      const came: string[] = [];
      for (let at = 0; at < bytes.length; ) {
        const { value: size } = sizes.next();
        for (const body of splitter.split(bytes.subarray(at, at + size))) came.push(body.toString('hex'));
        at += size;
      }
      assert.deepEqual(
        came,
        sent.map((body) => body.toString('hex')),
      );
      assert.equal(splitter.isWithin, false);
    }),
  );
});

test('reports that come while the service reads a long one are taken behind it', async () => {
  const report = (i: number, text: string) => framed(Buffer.from(JSON.stringify({ k: 'threw', i, text })));
  const sent = Buffer.concat([report(0, 'x'.repeat(300_000)), report(1, 'y')]);
  const socket = new PassThrough({ highWaterMark: 1 << 20 });
  const taken: unknown[] = [];
  const broken: string[] = [];
  const take = (came: Report) => taken.push('i' in came && came.i);
  const reader = new ReportReader(socket, token, take, (reason) => broken.push(reason));
  socket.pause();
  let at = 0;
  for (const end of [200_000, sent.length - 20, sent.length]) {
    socket.write(sent.subarray(at, end));
    at = end;
  }
  await setImmediate();
  socket.resume();
  for (const late = AbortSignal.timeout(60_000); taken.length < 2 && !broken[0] && !late.aborted; )
    await setImmediate();
  assert.deepEqual({ taken, broken, isPaused: reader.isPaused }, { taken: [0, 1], broken: [], isPaused: false });
});

test('a result of megabytes arrives, in pieces of a few bytes too', async (t) => {
  const call = await speaking(t);
  const long = `JSON.stringify(${resultOf(`Array.from({ length: 100_000 }, (_, i) => 'ä' + i)`)})`;
  const result = Array.from({ length: 100_000 }, (_, i) => `ä${i}`);
  assert.deepEqual(await call(`write(frame(${long}))`), result);
  const dripping = `const all = frame(JSON.stringify(${resultOf(`'x'.repeat(3000)`)}));
    for (let at = 0; at < all.length; at += 7) write(all.subarray(at, at + 7));`;
  assert.equal(await call(dripping), 'x'.repeat(3000));
});

test('a process that answers pings and none of its last three calls is replaced', async (t) => {
  const call = await speaking(t, 200);
  const answer = `if (!globalThis.isMute) say(${resultOf('process.pid')});`;
  const pid = await call(answer);
  assert.equal(await call(answer), pid);
  for (let i = 0; i < 3; i += 1) {
    await assert.rejects(call(`globalThis.isMute = true; ${answer}`), { message: 'no answer within 200 ms' });
  }
  assert.notEqual(await call(answer), pid);
});

test('a process that was stopped is replaced, though nothing is owed any more', async (t) => {
  const call = await speaking(t, 5);
  const pids = new Set<unknown>();
  const pid = Number(await eventually(() => call(`say(${resultOf('process.pid')})`)));
  process.kill(pid, 'SIGSTOP');
  const late = AbortSignal.timeout(120_000);
  while (!late.aborted && [...pids].every((other) => other === pid)) {
    pids.add(await call(`say(${resultOf('process.pid')})`).catch(() => pid));
  }
  assert.ok([...pids].some((other) => other !== pid));
});

async function eventually<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    const [end] = await Promise.allSettled([work()]);
    if (end.status === 'fulfilled') return end.value;
  }
}
