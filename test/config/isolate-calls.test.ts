/** Calls of an isolated plugin are bounded, and their failures name its file. */
import assert from 'node:assert/strict';
import { url as inspectorUrl } from 'node:inspector';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { bundlePlugin } from '../../config/plugins/isolate/bundle.ts';
import { PluginHost } from '../../config/plugins/isolate/host.ts';
import { nodeOptions } from '../../config/plugins/isolate/node-options.ts';
import { takeParameters } from '../../plugins-sdk/hooks/results.ts';
import { folder } from './support.ts';

/** An isolated plugin without a service. */
async function started(t: TestContext, hooks: string, budget = 10_000) {
  const dir = await folder(t, { 'p.mjs': `export default { name: 'p', hooks: { ${hooks} } };` });
  const logged: string[] = [];
  const isolate = new PluginHost({
    bundle: await bundlePlugin(pathToFileURL(join(dir, 'p.mjs')).href),
    memory: 128,
    config: undefined,
    budget,
    patience: 10_000,
    line: (text) => logged.push(text),
    log: (level, message) => logged.push(`${level} ${message}`),
    count: () => undefined,
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
  assert.match(String(stack).split('\n')[1] ?? '', /^ {4}at .*\(file:\/\/\/\S+\/p\.mjs:3:13\)$/);
  assert.doesNotMatch(String(stack), /eval1/);
  await isolate.call('onBeforeSign', {});
  await isolate.stop();
  assert.match(logged.find((text) => text.includes('at ')) ?? '', /^ {4}at .*\(file:\/\/\/\S+\/p\.mjs:5:\d+\)$/);
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
  const { isolate } = await started(t, 'onError: () => process.pid');
  const killed = Number(await isolate.call('onError', {}));
  process.kill(killed, 'SIGKILL');
  assert.notEqual(await isolate.call('onError', {}), killed);
});

test('a call is at most 4 MiB long', async (t) => {
  const { isolate } = await started(t, 'onBeforeSign: ({ data }) => ({ data: data.length })');
  await assert.rejects(isolate.call('onBeforeSign', { data: 'x'.repeat(4 * 1024 * 1024) }), {
    message: 'the call is longer than 4 MiB',
  });
  assert.deepEqual(await isolate.call('onBeforeSign', { data: 'x'.repeat(1 << 20) }), { data: 1 << 20 });
});

test('calls for which no budget is left make room for others', async (t) => {
  const { isolate } = await started(t, 'onBeforeSign: () => new Promise(() => {}), onError: () => 1', 200);
  const calls = Array.from({ length: 512 }, () => isolate.call('onBeforeSign', { data: '0x00' }));
  for (const end of await Promise.allSettled(calls)) {
    assert.equal(end.status === 'rejected' && end.reason.message, 'no answer within 200 ms');
  }
  assert.equal(await isolate.call('onError', {}), 1);
});

test('values that JSON would change arrive as what they are', async (t) => {
  const { isolate } = await started(t, `onError: ({ what }) => new Function('return ' + what)()`);
  const of = (what: string) => isolate.call('onError', { what });
  const data = [1, 'ä', null, { b: true }];
  assert.deepEqual(await of('({ data: [1, "ä", null, { b: true }], a: 1, status: 200 })'), { data, a: 1, status: 200 });
  assert.equal(await of('undefined'), undefined);
  assert.ok(Number.isNaN(Object(await of('({ data: NaN })')).data));
  assert.equal(typeof Object(await of('({ data: [() => 1] })')).data[0], 'function');
  assert.equal(typeof Object(await of('({ data: 1n })')).data, 'bigint');
  assert.deepEqual(Object.keys(Object(await of('({ reject: undefined })'))), ['reject']);
  const dated = Object(await of('({ data: new Date(0) })')).data;
  assert.notEqual(Object.getPrototypeOf(dated), Object.prototype);
  assert.equal(
    await of('JSON.parse(\'{"__proto__": 1}\')').then((value) => Object.hasOwn(Object(value), '__proto__')),
    true,
  );
  assert.equal(Object(await of('(() => { const a = []; a.push(a); return { data: a }; })()')).data.length, 1);
});

test('what a hook may return in the process of the service arrives from another one, however long it is', async (t) => {
  const { isolate } = await started(t, `onError: ({ what }) => new Function('return ' + what)()`);
  const of = (what: string) => isolate.call('onError', { what });
  for (const characters of [70_000, 1_000_000, 2 << 20]) {
    assert.deepEqual(await of(`({ data: '0x' + 'a'.repeat(${characters}) })`), { data: `0x${'a'.repeat(characters)}` });
  }
  const parameters = { a: 'x'.repeat(100_000) };
  assert.deepEqual(await of(`({ parameters: { a: 'x'.repeat(100_000) } })`), { parameters });
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [i, i]));
  assert.deepEqual(await of('({ ...Array.from({ length: 30 }, (_, i) => i) })'), many);
});

test('of parameters too long to be read at once, no hook may return any', async (t) => {
  const { isolate } = await started(t, `onError: () => ({ parameters: { a: 'x'.repeat(131_100) } })`);
  const inside = { parameters: { a: 'x'.repeat(131_100) } };
  for (const result of [inside, await isolate.call('onError', {})])
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

test('a frame that is forged ends the process when it begins, however slowly it comes', async (t) => {
  const { isolate } = await started(
    t,
    `async onError() {
      const frame = Buffer.alloc(24, 1);
      frame.writeUInt32LE(4 << 20);
      (await import('node:fs')).writeSync(4, frame);
      return new Promise(() => undefined);
    }`,
  );
  await assert.rejects(isolate.call('onError', {}), { stack: /it sent a forged frame$/ });
});

test('a plugin does not find the token in memory that small buffers share', async (t) => {
  // With it, a frame that it writes counts as one of the process's own.
  const { isolate } = await started(
    t,
    `async onError() {
      const { writeSync } = await import('node:fs');
      const pool = Buffer.from(Buffer.from('a').buffer);
      const body = Buffer.from(JSON.stringify({ k: 'done', i: 1, r: 'forged' }));
      const at = pool.indexOf('{"k":"loaded"');
      const head = Buffer.alloc(4);
      head.writeUInt32LE(16 + body.length);
      if (at < 16) return 'not there';
      writeSync(4, Buffer.concat([head, pool.subarray(at - 16, at), body]));
      return new Promise(() => undefined);
    }`,
  );
  const [end] = await Promise.allSettled([isolate.call('onError', {})]);
  assert.notEqual(end.status === 'fulfilled' && end.value, 'forged');
});

test('a plugin cannot take memory through the file that it shares with the service', async (t) => {
  const { isolate } = await started(
    t,
    `async onError() {
      (await import('node:fs')).writeSync(5, Buffer.alloc(1 << 20), 0, 1 << 20, 16);
      return new Promise(() => undefined);
    }`,
  );
  await assert.rejects(isolate.call('onError', {}), { stack: /it wrote into what it shares with the service$/ });
});

test('a plugin that writes without end waits, and is not read without end', async (t) => {
  const { isolate } = await started(
    t,
    `async onError() {
      const { writeSync } = await import('node:fs');
      globalThis.written = 0;
      const some = Buffer.alloc(4096, 10);
      const end = Date.now() + 500;
      while (Date.now() < end) try { written += writeSync(1, some); } catch { await new Promise(setImmediate); }
      return written;
    }`,
  );
  const end = await isolate.call('onError', {});
  assert.ok(Number(end) < 2 * 1024 * 1024, `${end} bytes were read`);
});

test('of what a plugin throws, the log gets 16 Ki characters', async (t) => {
  const { isolate } = await started(t, `onError() { throw 'x'.repeat(1 << 20); }`);
  const [end] = await Promise.allSettled([isolate.call('onError', {})]);
  assert.equal(end.status === 'rejected' && end.reason.stack.length, 16_385);
});
