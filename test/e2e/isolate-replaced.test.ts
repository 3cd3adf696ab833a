/** A process of a plugin that was stopped is replaced, and nobody is refused. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { recovered } from '../support/isolated.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

/** A service with one isolated plugin, which tells its process to whoever asks. */
async function startWith(t: TestContext, hooks: string, timeout = 2000) {
  const upstream = await upstreamFor(t);
  upstream.json('/price', { price: 7 });
  const { files, plugins } = pluginFiles({ p: pluginFile('p', hooks) }, { p: { isolate: true, timeout } });
  upstream.json('/long', { text: 'あ'.repeat(345_000) });
  const path = Array(3).fill('$.text').join();
  const endpoints = {
    price: { encoding: { type: 'uint256', path: '$.price' } },
    long: { encoding: { type: 'string,string,string', path } },
  };
  const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
  const price = (headers = {}) => service.post('api/price', {}, headers);
  const pid = async () => Number(Object(await (await price({ 'x-pid': '1' })).json()).error);
  return { service, price, pid };
}

const TELLS = `if (headers['x-pid']) return { reject: true, status: 499, message: String(process.pid) };`;

test('a process that was stopped is replaced by another one, and nobody is refused', async (t) => {
  const { service, price, pid } = await startWith(t, `onHttpRequest({ headers }) { ${TELLS} }`);
  const stopped = await pid();
  process.kill(stopped, 'SIGSTOP');
  await verifyEncoded(await price(), service.signer.address);
  assert.notEqual(await pid(), stopped);
  await recovered(service);
});

test('a process that is busy with the calls before is not taken for one that is stuck', async (t) => {
  const { service, price } = await startWith(t, 'onBeforeSign() { block(60); }', 1000);
  const answers = await Promise.all(Array.from({ length: 40 }, () => price()));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  assert.deepEqual(
    service.logs.filter(({ message }) => message.includes('has ended')),
    [],
  );
});

test('a report that nothing can be made of ends the process, and its call at once', async (t) => {
  const forged = '{"i":3,"threw":{"message":{"toString":1,"valueOf":1}}}\\n';
  const { service, price } = await startWith(
    t,
    `onHttpRequest({ headers }) { if (headers['x-forge']) { process.getBuiltinModule('node:fs').writeSync(4, '${forged}'); return new Promise(() => undefined); } }`,
  );
  assert.equal((await price({ 'x-forge': '1' })).status, 403);
  await verifyEncoded(await price(), service.signer.address);
});

test('a call that is too long to be sent leaves nothing behind for the next start', async (t) => {
  const hooks = `onHttpRequest({ headers }) { if (headers['x-crash']) process.exit(3); }, onBeforeSign() {}`;
  const { service, price } = await startWith(t, hooks, 300);
  for (let round = 0; round < 2; round += 1) {
    assert.equal((await service.post('api/long')).status, 403);
    assert.equal((await price({ 'x-crash': '1' })).status, 403);
    await verifyEncoded(await price(), service.signer.address);
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
    const { service, price, pid } = await startWith(
      t,
      `async onHttpRequest({ headers, signal }) { if (headers['x-break']) { ${code} } ${TELLS} },
       async onBeforeApiCall({ parameters }) { return { parameters }; }, onAfterApiCall({ response: { data } }) { return { data }; }`,
    );
    const before = await pid();
    await price({ 'x-break': '1' });
    for (let i = 0; i < 3; i += 1) await verifyEncoded(await price(), service.signer.address);
    assert.equal(await pid(), before);
  });
}
