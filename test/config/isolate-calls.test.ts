/** Calls of an isolated plugin are bounded, and their failures name its file. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { url as inspectorUrl } from 'node:inspector';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { bundlePlugin } from '../../config/plugins/isolate/bundle.ts';
import { type HostOptions, PluginHost } from '../../config/plugins/isolate/host.ts';
import { nodeOptions } from '../../config/plugins/isolate/node-options.ts';
import { PluginProcess } from '../../config/plugins/isolate/process.ts';
import { deferred } from '../../lib/time.ts';
import { takeParameters } from '../../plugins-sdk/hooks/results.ts';
import { eventually } from '../support/wait.ts';
import { folder } from './support.ts';

/** An isolated plugin without a service. */
async function started(t: TestContext, hooks: string, budget = 10_000, count: HostOptions['count'] = () => undefined) {
  const dir = await folder(t, { 'p.mjs': `export default { name: 'p', hooks: { ${hooks} } };` });
  const logged: string[] = [];
  const isolate = new PluginHost({
    code: await bundlePlugin(pathToFileURL(join(dir, 'p.mjs')).href),
    memory: 128,
    config: undefined,
    budget,
    line: (text) => logged.push(text),
    log: (level, message) => logged.push(`${level} ${message}`),
    count,
  });
  t.after(() => isolate.stop());
  await isolate.start();
  return { isolate, logged };
}

test('what a hook throws, and what its process writes, names the file and the line of the plugin', async (t) => {
  const hooks = `
    onError() {
      throw new Error('no');
    },
    onBeforeSign() { console.log(new Error('told').stack.split('\\n')[1]); return { data: '0x00' }; },
  `;
  const { isolate, logged } = await started(t, hooks);
  const stack = await isolate.call('onError', {}).then(String, (error: Error) => error.stack);
  assert.match(String(stack).split('\n')[1] ?? '', /^ {4}at .*\(\/\S+\/p\.mjs:3:13\)$/);
  assert.doesNotMatch(String(stack), /eval1/);
  await isolate.call('onBeforeSign', {});
  await isolate.stop();
  assert.match(logged.find((text) => text.includes('at ')) ?? '', /^ {4}at .*\(\/\S+\/p\.mjs:5:\d+\)$/);
});

test('512 calls may be under way, and no more', async (t) => {
  const { isolate } = await started(t, 'onBeforeSign: () => new Promise(() => {})');
  const calls = Array.from({ length: 515 }, () => isolate.call('onBeforeSign', { data: '0x00' }));
  const refused = await Promise.allSettled(calls.slice(512));
  await isolate.stop();
  const messages = [...(await Promise.allSettled(calls.slice(0, 512))), ...refused].map((end) =>
    end.status === 'rejected' ? end.reason.message : end.value,
  );
  assert.deepEqual(
    messages.slice(512),
    Array.from({ length: 3 }, () => '512 calls are in flight'),
  );
  assert.ok(!messages.slice(0, 512).includes('512 calls are in flight'));
});

test('a call that is sent to a process which was killed begins in the other one', async (t) => {
  const { isolate } = await started(t, 'onBeforeSign: () => ({ data: process.pid })');
  const pid = async () => Number(Object(await isolate.call('onBeforeSign', {})).data);
  const killed = await pid();
  process.kill(killed, 'SIGKILL');
  assert.notEqual(await pid(), killed);
});

test('a process that gets ready while the service stops is none that cannot', async (t) => {
  const restarted = deferred<void>();
  const { isolate, logged } = await started(
    t,
    'onBeforeSign: () => ({ data: process.pid })',
    10_000,
    (what) => what === 'restarts' && restarted.resolve(),
  );
  process.kill(Number(Object(await isolate.call('onBeforeSign', {})).data), 'SIGKILL');
  const waiting = isolate.call('onBeforeSign', {});
  await restarted.promise;
  await isolate.stop();
  await assert.rejects(waiting, { message: 'the service stops' });
  assert.deepEqual(logged, ['error its process has ended: it was ended by SIGKILL']);
});

test('a call is at most 4 MiB long', async (t) => {
  const { isolate } = await started(t, 'onBeforeSign: ({ data }) => ({ data: data.length })');
  await assert.rejects(isolate.call('onBeforeSign', { data: 'x'.repeat(4 * 1024 * 1024) }), {
    message: 'the call is longer than 4 MiB',
  });
  assert.deepEqual(await isolate.call('onBeforeSign', { data: 'x'.repeat(1 << 20) }), { data: 1 << 20 });
});

test('calls for which no budget is left make room for others', async (t) => {
  const { isolate } = await started(
    t,
    'onBeforeSign: () => new Promise(() => {}), onAfterApiCall: () => ({ data: 1 })',
    200,
  );
  const calls = Array.from({ length: 512 }, () => isolate.call('onBeforeSign', { data: '0x00' }));
  for (const end of await Promise.allSettled(calls))
    assert.equal(end.status === 'rejected' && end.reason.message, 'no answer within 200 ms');
  assert.deepEqual(await isolate.call('onAfterApiCall', {}), { data: 1 });
});

test('a process is not watched for a call that was given up', async (t) => {
  const hooks = 'onBeforeSign: () => new Promise(() => {}), onAfterApiCall: () => ({ data: process.pid })';
  const { isolate, logged } = await started(t, hooks, 300);
  const { data: own } = Object(await isolate.call('onAfterApiCall', {}));
  await assert.rejects(isolate.call('onBeforeSign', {}), { message: 'no answer within 300 ms' });
  // The last ping is answered in that time.
  await sleep(500);
  process.kill(own, 'SIGSTOP');
  await sleep(1000);
  process.kill(own, 'SIGCONT');
  assert.deepEqual([await isolate.call('onAfterApiCall', {}), logged], [{ data: own }, []]);
});

test('a process with 4,096 calls that never end is replaced', async (t) => {
  const { isolate, logged } = await started(t, 'onBeforeSign: () => new Promise(() => {})', 100);
  for (let round = 0; round < 9; round += 1)
    await Promise.allSettled(Array.from({ length: 512 }, () => isolate.call('onBeforeSign', {})));
  await eventually(() => logged.length === 2);
  assert.deepEqual(logged, ['error its process has ended: it did not end 4096 calls', 'info another process is ready']);
});

const made = `onAfterApiCall: ({ what }) => new Function('return ' + what)()`;

test('a result arrives as what it is, and of members that mean nothing the name alone', async (t) => {
  const { isolate } = await started(t, made);
  const of = (what: string) => isolate.call('onAfterApiCall', { what });
  const data = [1, 'ä', null, { b: true }];
  assert.deepEqual(await of('({ data: [1, "ä", null, { b: true }], status: 200 })'), { data, status: 200 });
  assert.equal(await of('undefined'), undefined);
  for (const none of ['null', '5', '"text"', '[1]', '() => 1']) assert.equal(await of(none), null);
  assert.deepEqual(await of('({ data: 1, stauts: () => 1, get other() { throw 1; } })'), {
    data: 1,
    stauts: null,
    other: null,
  });
  assert.deepEqual(await of('new (class { get data() { return 5; } })()'), { data: 5 });
});

test('what JSON would change is refused in the words of a plugin in the service', async (t) => {
  const { isolate } = await started(t, made);
  const refused = {
    '({ data: NaN })': 'holds a number, which JSON cannot carry',
    '({ data: [() => 1] })': 'holds a function, which JSON cannot carry',
    '({ data: 1n })': 'holds a bigint, which JSON cannot carry',
    '({ data: new Date(0) })': 'holds a class instance',
    '(() => { const a = []; a.push(a); return { data: a }; })()': 'is too deep, too large or in a cycle',
  };
  for (const [what, message] of Object.entries(refused))
    await assert.rejects(isolate.call('onAfterApiCall', { what }), { message });
});

test('what a hook may return in the process of the service arrives from another one, however long it is', async (t) => {
  const { isolate } = await started(t, made);
  const of = (what: string) => isolate.call('onAfterApiCall', { what });
  for (const characters of [70_000, 1_000_000, 2 << 20])
    assert.deepEqual(await of(`({ data: '0x' + 'a'.repeat(${characters}) })`), { data: `0x${'a'.repeat(characters)}` });
  const parameters = { a: 'x'.repeat(100_000) };
  assert.deepEqual(await of(`({ parameters: { a: 'x'.repeat(100_000) } })`), { parameters });
});

test('of parameters too long to be read at once, no hook may return any', async (t) => {
  const { isolate } = await started(t, `onBeforeApiCall: () => ({ parameters: { a: 'x'.repeat(131_100) } })`);
  const inside = { parameters: { a: 'x'.repeat(131_100) } };
  for (const result of [inside, await isolate.call('onBeforeApiCall', {})])
    assert.throws(() => takeParameters(result), { message: 'is too deep, too large or in a cycle' });
});

test('the options of node are those of its version', () => {
  const flags = (version: string) => nodeOptions(128, version).filter((option) => /permission|net|sqlite/.test(option));
  assert.deepEqual(flags('20.20.2'), ['--experimental-permission']);
  assert.deepEqual(flags('22.4.0'), ['--permission']);
  assert.deepEqual(flags('22.23.3'), ['--permission', '--no-experimental-sqlite']);
  assert.deepEqual(flags('24.21.0'), ['--permission', '--no-experimental-sqlite']);
  assert.deepEqual(flags('26.0.0'), ['--permission', '--allow-net', '--no-experimental-sqlite']);
});

test('a plugin cannot signal the service as the rest of its group', async (t) => {
  const { isolate } = await started(
    t,
    `async onError() { return new (await import('node:child_process')).ChildProcess()._handle.kill(12); }`,
  );
  let signals = 0;
  const note = () => {
    signals += 1;
  };
  process.on('SIGUSR2', note);
  t.after(() => process.off('SIGUSR2', note));
  await Promise.allSettled([isolate.call('onError', {})]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(signals, 0);
});

test('the service does not open its inspector when it is signalled', async (t) => {
  await started(t, 'onError: () => 1');
  process.kill(process.pid, 'SIGUSR1');
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(inspectorUrl(), undefined);
});

test('a plugin cannot have V8 write files, nor show what the code around it holds', async (t) => {
  const { isolate } = await started(
    t,
    `async onError({ act }) { const v8 = await import('node:v8'); return new Function('v8', act)(v8); }`,
  );
  for (const act of [
    `v8.setFlagsFromString('--redirect-code-traces')`,
    'v8.setHeapSnapshotNearHeapLimit(1)',
    'v8.getHeapSnapshot()',
    `v8.writeHeapSnapshot('/tmp/heap')`,
    'v8.queryObjects?.(Object) ?? v8.getHeapSnapshot()',
    `process.binding('v8')`,
    `process._linkedBinding('v8')`,
  ]) {
    await assert.rejects(isolate.call('onError', { act }), { stack: /an isolated plugin cannot do that/ });
  }
});

for (const [what, text, reason] of [
  ['what is no JSON', '\\u0001', 'it sent what is no JSON'],
  ['an endless report', '{'.repeat(5 << 20), 'it sent more than 4 MiB'],
  ['that a call begins twice', '{"i":3,"begins":true}\\n', 'it reported what nobody has asked for'],
  ['of a call that nobody has asked for', '{"i":9,"done":true}\\n', 'it reported what nobody has asked for'],
] as const)
  test(`a process that reports ${what} is ended`, async (t) => {
    const { isolate } = await started(
      t,
      `async onError() {
        (await import('node:fs')).writeSync(4, ${text.length > 100 ? `'{'.repeat(${text.length})` : `'${text}'`});
        return new Promise(() => undefined);
      }`,
    );
    await assert.rejects(isolate.call('onError', {}), { message: `its process has ended: ${reason}` });
  });

test('a process that reports what is nested too deeply is ended before the service parses it', async (t) => {
  const { isolate } = await started(
    t,
    `async onError() {
      const { writeSync } = await import('node:fs');
      const bytes = Buffer.from('{"i":3,"done":true,"ok":{"data":' + '['.repeat(1e6) + ']'.repeat(1e6) + '}}\\n');
      for (let at = 0; at < bytes.length; ) at += writeSync(4, bytes, at);
      return new Promise(() => undefined);
    }`,
  );
  await assert.rejects(isolate.call('onError', {}), {
    message: 'its process has ended: it nested deeper than 512 levels',
  });
});

test('a result of as many levels as any hook may return arrives', async (t) => {
  const hook = 'onBeforeSign: () => { let data = 1; for (let i = 1; i < 256; i++) data = [data]; return { data }; }';
  const { isolate } = await started(t, hook);
  assert.equal(JSON.stringify(await isolate.call('onBeforeSign', {})).match(/\[/g)?.length, 255);
});

test('an answer that comes too late does no harm', async (t) => {
  const { isolate, logged } = await started(
    t,
    'onBeforeSign: () => new Promise((resolve) => setTimeout(resolve, 400)), onError: () => undefined',
    100,
  );
  await assert.rejects(isolate.call('onBeforeSign', {}), { message: 'no answer within 100 ms' });
  await new Promise((resolve) => setTimeout(resolve, 600));
  await isolate.call('onError', {});
  assert.deepEqual(logged, []);
});

test('a process that loops is replaced though nobody asks it again', async (t) => {
  // Whether a check of the processes falls into a call as short as this one is chance.
  for (let tries = 0; tries < 3; tries += 1) {
    const { isolate, logged } = await started(t, 'onBeforeSign() { for (;;); }', 1);
    await assert.rejects(isolate.call('onBeforeSign', {}), { message: 'no answer within 1 ms' });
    await eventually(() => logged.length === 2);
    assert.deepEqual(logged, ['error its process has ended: it does not answer', 'info another process is ready']);
  }
});

test('a plugin that writes without end waits, and is not read without end', async (t) => {
  const { isolate } = await started(
    t,
    `async onBeforeSign() {
      const { writeSync } = await import('node:fs');
      globalThis.written = 0;
      const some = Buffer.alloc(4096, 10);
      const end = Date.now() + 500;
      while (Date.now() < end) try { written += writeSync(1, some); } catch { await new Promise(setImmediate); }
      return { data: written };
    }`,
  );
  const end = Number(Object(await isolate.call('onBeforeSign', {})).data);
  assert.ok(end < 2 * 1024 * 1024, `${end} bytes were read`);
});

test('of what a plugin throws, the log gets 16 Ki characters', async (t) => {
  const { isolate } = await started(t, `onError() { throw 'x'.repeat(1 << 20); }`);
  const [end] = await Promise.allSettled([isolate.call('onError', {})]);
  assert.equal(end.status === 'rejected' && end.reason.stack.length, 16_385);
});

test('where no process can be started, no file stays open', (t) => {
  const opened = t.mock.method(fs, 'openSync');
  t.mock.method(fs, 'readdirSync', () => assert.fail('too many open files'));
  syncBuiltinESMExports();
  t.after(() => t.mock.restoreAll());
  t.after(syncBuiltinESMExports);
  assert.throws(() => new PluginProcess({ code: '', memory: 128, line: () => undefined }), /too many/);
  for (const { result = -1 } of opened.mock.calls) assert.throws(() => fs.fstatSync(result), { code: 'EBADF' });
});
