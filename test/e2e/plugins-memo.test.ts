/** A memo goes with its request from hook to hook, and is of one plugin. */

import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext, test } from 'node:test';
import { isolatedFiles, recovered } from '../support/isolated.ts';
import { notes, pluginFile, pluginFiles, pluginTools } from '../support/plugin-files.ts';
import { encoding, oneApi, serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

type Sources = Readonly<Record<string, string>>;

/** A service whose endpoints `price` (encoded) and `raw` answer 7, with plugins by name. */
async function startWith(t: TestContext, sources: Sources, isolate: boolean, upstream = {}) {
  const api = await upstreamFor(t, upstream);
  for (const path of ['/raw', '/kept']) api.json(path, { price: 7 });
  if (!('/price' in upstream)) api.json('/price', { price: 7 });
  const more = Object.fromEntries(Object.keys(sources).map((name) => [name, { isolate, timeout: 5000 }]));
  const { files, plugins } = pluginFiles(sources, more);
  const endpoints = {
    price: { encoding, parameters: [{ name: 'pid', default: '' }] },
    raw: {},
    kept: { cache: { maxAge: 60_000 } },
  };
  return await serviceFor(t, oneApi(api.url, endpoints, { settings: { plugins } }), { files });
}

for (const isolate of [false, true]) {
  describe(isolate ? 'isolated' : 'in the process of the service', () => {
    const wrap = isolate ? isolatedFiles() : String;
    afterEach(() => notes.clear());
    const HOOKS = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign', 'onResponseSent', 'onError'];
    const counting = (name: string) => {
      const noting = (hook: string) =>
        `${hook}({ memo }) { memo.trail = [...(memo.trail ?? []), '${hook}']; note('${name} ${hook}', memo); }`;
      return wrap(pluginFile(name, HOOKS.map(noting).join(',')));
    };

    it('a memo goes with its request from hook to hook, and is of one plugin', async (t) => {
      const service = await startWith(t, { a: counting('a'), b: counting('b') }, isolate);
      await verifyEncoded(await service.post('api/price'), service.signer.address);
      const trail = HOOKS.slice(0, -1);
      for (const name of ['a', 'b']) assert.deepEqual(await notes.until(`${name} onResponseSent`), [{ trail }]);
      await fetch(`${service.url}/endpoints/0x00`, { method: 'POST' });
      assert.deepEqual(await notes.until('a onError'), [{ trail: ['onError'] }]);
    });

    it('of hooks whose work may be shared, onResponseSent finds what onHttpRequest left, and they their own', async (t) => {
      const service = await startWith(t, { a: counting('a') }, isolate);
      for (let i = 0; i < 2; i += 1) await service.post('api/kept');
      const own = { trail: ['onHttpRequest', 'onResponseSent'] };
      assert.deepEqual(await notes.until('a onResponseSent', 2), [own, own]);
      const inside = { trail: ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall'] };
      assert.deepEqual(notes.of('a onAfterApiCall'), [inside]);
    });

    it('a hook that leaves no JSON, or too much, fails and says so', async (t) => {
      const left = `({ memo }) { memo.a = 'x'.repeat(4089); }`;
      const plugin = pluginFile('a', `onBeforeApiCall${left}, onError${left}`);
      const service = await startWith(t, { a: wrap(plugin) }, isolate);
      const response = await service.post('api/price');
      assert.deepEqual([response.status, await response.json()], [403, { error: 'Request dropped by plugin "a"' }]);
      const reasons = () => {
        const told = service.logs.map(({ fields }) => String(fields.error ?? fields.detail).split('\n')[0]);
        return told.filter((reason) => reason?.includes('memo'));
      };
      await eventually(() => reasons().length >= 2, 'both reasons');
      assert.deepEqual(reasons(), Array(2).fill('Error: "memo" is longer than 4096 bytes'));
    });

    it('onResponseSent gets the answer that was sent', async (t) => {
      const spy = pluginFile(
        'spy',
        `onResponseSent(context) {
          const { answer } = context;
          note('answer', [answer, answer === context.answer, Object.isFrozen(answer), Object.isFrozen(answer.rawData ?? Object.freeze({}))]);
        }`,
      );
      const service = await startWith(t, { spy: wrap(spy) }, isolate);
      const sent = [];
      for (const endpoint of ['price', 'raw']) sent.push(await (await service.post(`api/${endpoint}`)).json());
      const seen = sent.map((answer) => [answer, true, true, true]);
      assert.deepEqual(await notes.until('answer', 2), seen);
    });

    it('a credential is seen by the plugin that declares it, and by no other', async (t) => {
      const source = (name: string, more: string) =>
        wrap(
          `${pluginTools}export default { name: '${name}', ${more} hooks: { onHttpRequest({ headers }) { note('${name}', headers.authorization ?? 'hidden'); } } };`,
        );
      const sources = { own: source('own', `credentials: ['Authorization'],`), other: source('other', '') };
      const service = await startWith(t, sources, isolate);
      await service.post('api/raw', {}, { Authorization: 'Bearer x' });
      assert.deepEqual([await notes.until('own'), await notes.until('other')], [['Bearer x'], ['hidden']]);
      const preflight = await fetch(`${service.url}/endpoints/0x00`, { method: 'OPTIONS' });
      const allowed = preflight.headers.get('access-control-allow-headers')?.split(', ');
      assert.ok(allowed?.includes('Authorization'), String(allowed));
      const warning = 'own: sees the credentials in Authorization';
      assert.equal(service.logs.filter(({ message }) => message.endsWith(warning)).length, 1);
    });
  });
}

for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
  test(`a memo is there when another process takes over between two hooks (${signal})`, async (t) => {
    const cents = pluginFile(
      'cents',
      `onHttpRequest({ headers, memo }) { memo.times = Number(headers['x-times'] ?? 1); },
       onBeforeApiCall: ({ parameters, memo }) => { memo.pid = process.pid; return { parameters: { ...parameters, pid: String(process.pid) } }; },
       onAfterApiCall: ({ response: { data }, memo }) => {
         return { data: { price: data.price * memo.times + (memo.pid === process.pid ? 0 : 1) } };
       }`,
    );
    let isHit = false;
    const service = await startWith(t, { cents }, true, {
      '/price': ((request, response, recorded) => {
        const pid = Number(new URL(request.url ?? '', 'http://x').searchParams.get('pid'));
        if (!isHit) process.kill(pid, signal);
        isHit = true;
        return faults.json({ price: 7 })(request, response, recorded);
      }) satisfies Handler,
    });
    const price = async () => {
      const response = await service.post('api/price', {}, { 'x-times': '100' });
      return BigInt((await verifyEncoded(response, service.signer.address)).data);
    };
    // One more than what a process makes of it that has begun with it.
    assert.equal(await price(), 701n);
    assert.equal(await price(), 700n);
    await recovered(service);
  });
}
