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
async function startWith(t: TestContext, hooks: string) {
  const upstream = await upstreamFor(t);
  upstream.json('/price', { price: 7 });
  const { files, plugins } = pluginFiles({ p: pluginFile('p', hooks) }, { p: { isolate: true, timeout: 2000 } });
  const endpoints = { price: { encoding: { type: 'uint256', path: '$.price' } } };
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
