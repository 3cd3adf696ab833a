/** A process of a plugin that was stopped is replaced, and nobody is refused. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { recovered } from '../support/isolated.ts';
import { pluginFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

/** A service with one isolated plugin, which tells its process to whoever asks. */
async function startWith(t: TestContext, hooks: string, timeout = 2000) {
  const path = Array(3).fill('$.text').join();
  const endpoints = {
    price: { encoding: { type: 'uint256', path: '$.price' } },
    long: { encoding: { type: 'string,string,string', path } },
  };
  const { service, post, encoded } = await served(t, endpoints, {
    answers: { '/price': faults.json({ price: 7 }), '/long': faults.json({ text: 'あ'.repeat(345_000) }) },
    sources: { p: pluginFile('p', hooks) },
    entries: { p: { isolate: true, timeout } },
  });
  const price = (headers = {}) => post('price', {}, headers);
  const pid = async () => Number(Object(await (await price({ 'x-pid': '1' })).json()).error);
  return { service, post, price, pid, verified: () => encoded('price') };
}

const TELLS = `if (headers['x-pid']) return { reject: true, status: 499, message: String(process.pid) };`;

test('a process that was stopped is replaced by another one, and nobody is refused', async (t) => {
  const { service, verified, pid } = await startWith(t, `onHttpRequest({ headers }) { ${TELLS} }`);
  const stopped = await pid();
  process.kill(stopped, 'SIGSTOP');
  await verified();
  assert.notEqual(await pid(), stopped);
  await recovered(service);
});

test('a process that is busy with the calls before is not taken for one that is stuck', async (t) => {
  const { service, price } = await startWith(t, 'onBeforeSign() { block(60); }', 1000);
  const answers = await Promise.all(Array.from({ length: 40 }, () => price()));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  assert.ok(!service.logs.some(({ message }) => message.includes('has ended')));
});

test('a report that nothing can be made of ends the process, and its call at once', async (t) => {
  const forged = '{"i":3,"threw":{"message":{"toString":1,"valueOf":1}}}\\n';
  const { price, verified } = await startWith(
    t,
    `onHttpRequest({ headers }) { if (headers['x-forge']) { process.getBuiltinModule('node:fs').writeSync(4, '${forged}'); return new Promise(() => undefined); } }`,
  );
  assert.equal((await price({ 'x-forge': '1' })).status, 403);
  await verified();
});

test('a call that is too long to be sent leaves nothing behind for the next start', async (t) => {
  const hooks = `onHttpRequest({ headers }) { if (headers['x-crash']) process.exit(3); }, onBeforeSign() {}`;
  const { post, price, verified } = await startWith(t, hooks, 300);
  for (let round = 0; round < 2; round += 1) {
    assert.equal((await post('long')).status, 403);
    assert.equal((await price({ 'x-crash': '1' })).status, 403);
    await verified();
  }
});

const BREAKS: Readonly<Record<string, string>> = {
  'Promise.prototype.then': `Promise.prototype.then = () => { throw new Error('no'); };`,
  'Array.prototype.push': 'Array.prototype.push = () => 0;',
  'methods of maps and of objects': `for (const name of ['get', 'set', 'has', 'delete']) Map.prototype[name] = () => { throw new Error('no'); };
    for (const name of ['assign', 'freeze', 'defineProperty']) Object[name] = () => { throw new Error('no'); };`,
};

for (const [what, code] of Object.entries(BREAKS)) {
  test(`a plugin that breaks ${what} for itself is asked as before`, async (t) => {
    const { price, verified, pid } = await startWith(
      t,
      `async onHttpRequest({ headers, signal }) { if (headers['x-break']) { ${code} } ${TELLS} },
       async onBeforeApiCall({ parameters }) { return { parameters }; }, onAfterApiCall({ response: { data } }) { return { data }; }`,
    );
    const before = await pid();
    await price({ 'x-break': '1' });
    for (let i = 0; i < 3; i += 1) await verified();
    assert.equal(await pid(), before);
  });
}
