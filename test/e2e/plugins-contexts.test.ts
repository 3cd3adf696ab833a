/** Each hook gets its own members, and nothing more. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { postText } from '../support/http.ts';
import { isolatedFiles } from '../support/isolated.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const HOOKS = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign', 'onResponseSent', 'onError'];

/** Notes what it gets, and tries to change it in every way there is. */
const spy = pluginFile(
  'spy',
  HOOKS.map((hook) => `${hook}(context) { return look('${hook}', context); }`).join(','),
  `
const attempt = (change) => { try { change(); return 'silent'; } catch (error) { return error.constructor.name; } };
const attack = (target) => [
  attempt(() => { target.extra = 1; }),
  ...Object.keys(target).flatMap((key) => [attempt(() => { target[key] = 'changed'; }), attempt(() => { delete target[key]; })]),
];
function look(hook, context) {
  const { signal, response, error, ...rest } = context;
  const shown = { ...rest };
  if (response !== undefined) shown.response = { data: response.data, status: response.status };
  note(hook, structuredClone(shown));
  note(hook + ' keys', Reflect.ownKeys(context).sort());
  note(hook + ' signal', [signal instanceof AbortSignal, signal.aborted]);
  if (error !== undefined) note(hook + ' error', [error instanceof Error, error.message, Object.keys(error)]);
  const frozen = [context, context.parameters, context.headers, context.parameters?.filter].filter((part) => part !== undefined);
  note(hook + ' writes', [...new Set(frozen.flatMap(attack))]);
  if (response !== undefined) {
    note(hook + ' response writes', [...new Set(attack(response))]);
    // The data is a copy: writes to it go through and change nothing.
    if (response.data !== null) { response.data.price = 'changed'; response.data.deep.list.push('changed'); }
  }
}`,
);

/** Sees what the spy left. */
const witness = pluginFile(
  'witness',
  `onBeforeApiCall({ parameters }) { note('witness parameters', parameters); },
   onAfterApiCall({ response }) { note('witness data', response.data); }`,
);

/** Besides `signal`, which is made when it is asked for. */
const COMMON = ['api', 'endpoint', 'endpointId', 'requestId'];

for (const isolate of [false, true]) {
  describe(isolate ? 'isolated' : 'in the process of the service', () => {
    const wrap = isolate ? isolatedFiles() : String;
    describe('what hooks get', async () => {
      const answer = { price: 12.5, deep: { list: [1, 2] } };
      const upstream = await upstreamFor(suite);
      upstream.json('/prices/ETH', answer);
      upstream.json('/raw', answer);
      upstream.text('/exact', '{"price": 12345678901234567891, "deep": {"list": []}}');
      upstream.on('/empty', faults.empty(204));
      upstream.on('/down', faults.serverError());
      const sources = { spy: wrap(spy), witness: wrap(witness) };
      const { files, plugins } = pluginFiles(sources, { spy: { isolate }, witness: { isolate } });
      const parameters = [
        { name: 'symbol', in: 'path', required: true },
        { name: 'limit', default: 5 },
        { name: 'unit', fixed: 'usd' },
        { name: 'token', in: 'header', secret: true },
        { name: 'filter', in: 'body' },
        { name: 'absent' },
      ];
      const encoding = { type: 'int256', path: '$.price', times: '100' };
      const endpoints = {
        encoded: { path: '/prices/{symbol}', method: 'POST', parameters, encoding },
        raw: {},
        exact: { encoding: { type: 'uint256', path: '$.price' } },
        empty: {},
        down: {},
      };
      const api = { name: 'prices', auth: { type: 'apiKey', keys: ['client-key'] } };
      const config = oneApi(upstream.url, endpoints, { api, settings: { plugins } });
      const service = await serviceFor(suite, config, { files });
      beforeEach(() => notes.clear());

      const post = (endpoint: string, parameters?: unknown, headers: Record<string, string> = {}) =>
        service.post(`prices/${endpoint}`, parameters, { 'X-Api-Key': 'client-key', ...headers });
      const filter = { tags: ['a', { b: null }] };
      const sent = { symbol: 'ETH', token: 'client-secret', filter, unit: 'eur', undeclared: 1 };
      const common = (endpoint: string, response: Response) => ({
        requestId: response.headers.get('x-request-id'),
        endpointId: service.ids[`prices/${endpoint}`],
        api: 'prices',
        endpoint,
      });

      it('each its own members, exactly, and nothing more', async () => {
        const response = await post('encoded', sent, { 'X-Tenant': 'Acme', 'X-Payment-Proof': 'proof' });
        const { data } = await verifyEncoded(response, service.signer.address);
        assert.equal(BigInt(data), 1250n);
        await notes.until('onResponseSent');
        const same = common('encoded', response);
        assert.match(String(same.requestId), /^0x[0-9a-f]{64}$/);

        const [request] = notes.of('onHttpRequest') as [{ headers: Record<string, string> }];
        const { headers, ...rest } = request;
        assert.deepEqual(rest, { ...same, parameters: sent, ip: '127.0.0.1' });
        assert.equal(headers['x-tenant'], 'Acme');
        assert.equal(headers['content-type'], 'application/json');
        for (const name of Object.keys(headers)) assert.equal(name, name.toLowerCase());
        for (const credential of ['x-api-key', 'x-payment-proof']) assert.ok(!(credential in headers), credential);
        assert.deepEqual(notes.of('onHttpRequest keys'), [[...COMMON, 'headers', 'ip', 'parameters'].sort()]);

        const visible = { symbol: 'ETH', limit: 5, filter };
        assert.deepEqual(notes.of('onBeforeApiCall'), [{ ...same, parameters: visible }]);
        assert.deepEqual(notes.of('onBeforeApiCall keys'), [[...COMMON, 'parameters'].sort()]);

        const response200 = { data: answer, status: 200 };
        assert.deepEqual(notes.of('onAfterApiCall'), [{ ...same, parameters: visible, response: response200 }]);
        assert.deepEqual(notes.of('onAfterApiCall keys'), [[...COMMON, 'parameters', 'response'].sort()]);

        assert.deepEqual(notes.of('onBeforeSign'), [{ ...same, data }]);
        assert.deepEqual(notes.of('onBeforeSign keys'), [[...COMMON, 'data'].sort()]);

        const [{ duration, ...seen }] = notes.of('onResponseSent') as [{ duration: number }];
        assert.deepEqual(seen, { ...same, status: 200 });
        assert.ok(typeof duration === 'number' && duration > 0);
        assert.deepEqual(await notes.until('onResponseSent keys'), [[...COMMON, 'duration', 'status'].sort()]);
        assert.deepEqual(notes.of('onError'), []);
      });

      it('a signal that has not aborted in time, in every hook', async () => {
        await (await post('encoded', sent)).text();
        await (await post('down')).text();
        await notes.until('onError');
        for (const hook of HOOKS) {
          const signals = await notes.until(`${hook} signal`);
          assert.ok(signals.length > 0, hook);
          for (const signal of signals) assert.deepEqual(signal, [true, false], hook);
        }
      });

      it('an error, its stage and its status in onError', async () => {
        const response = await post('down');
        assert.deepEqual([response.status, await response.json()], [502, { error: 'API call failed' }]);
        const seen = { ...common('down', response), stage: 'callApi', status: 502 };
        assert.deepEqual(await notes.until('onError'), [seen]);
        assert.deepEqual(await notes.until('onError error'), [[true, 'API call failed', []]]);
        assert.deepEqual(await notes.until('onError keys'), [[...COMMON, 'error', 'stage', 'status'].sort()]);
        assert.deepEqual(notes.of('onResponseSent'), []);
      });

      it('an error without names for an endpoint that does not exist', async () => {
        const response = await postText(`${service.url}/endpoints/not-an-id`, '{}');
        assert.deepEqual([response.status, await response.json()], [404, { error: 'Endpoint not found' }]);
        const nothing = { endpointId: 'not-an-id', api: undefined, endpoint: undefined };
        const requestId = response.headers.get('x-request-id');
        assert.deepEqual(await notes.until('onError'), [{ requestId, ...nothing, stage: 'resolve', status: 404 }]);
        assert.deepEqual(await notes.until('onError error'), [[true, 'Endpoint not found', []]]);
        assert.deepEqual(notes.of('onHttpRequest'), [], 'no other hook sees such a request');
      });

      it('frozen contexts: a write throws and changes nothing', async () => {
        const response = await post('encoded', sent);
        await verifyEncoded(response, service.signer.address);
        await (await post('down')).text();
        await notes.until('onError');
        for (const hook of HOOKS) {
          for (const outcome of notes.of(`${hook} writes`)) assert.deepEqual(outcome, ['TypeError'], hook);
        }
        assert.deepEqual(notes.of('onAfterApiCall response writes'), [['TypeError']]);
        assert.deepEqual(notes.of('witness parameters')[0], { symbol: 'ETH', limit: 5, filter });
        const [request] = upstream.requests.filter(({ path }) => path.startsWith('/prices/ETH')).slice(-1);
        assert.equal(request?.path, '/prices/ETH?limit=5&unit=usd');
        assert.equal(request?.headers.token, 'client-secret');
        assert.deepEqual(JSON.parse(request?.body ?? ''), { filter });
      });

      it('response.data is a copy: what a hook does to it neither the next hook nor the client sees', async () => {
        const { rawData } = await verifyRaw(await post('raw'), service.signer.address);
        assert.deepEqual(rawData, answer);
        assert.deepEqual(notes.of('witness data'), [answer]);
      });

      it('a number that only was looked at is encoded digit by digit', async () => {
        const { data } = await verifyEncoded(await post('exact'), service.signer.address);
        assert.equal(BigInt(data), 12345678901234567891n);
        assert.deepEqual(notes.of('witness data'), [{ price: 12345678901234567000, deep: { list: [] } }]);
      });

      it('raw endpoints skip onBeforeSign', async () => {
        await verifyRaw(await post('raw'), service.signer.address);
        await notes.until('onResponseSent');
        assert.deepEqual(notes.of('onBeforeSign'), []);
        assert.equal(notes.of('onAfterApiCall').length, 1);
      });

      it('the answer to an empty upstream body is null, as its client gets it', async () => {
        const { rawData } = await verifyRaw(await post('empty'), service.signer.address);
        assert.equal(rawData, null);
        assert.deepEqual(notes.of('witness data'), [null]);
      });
    });

    describe('order and results', async () => {
      const add = (name: string) =>
        pluginFile(
          name,
          `onHttpRequest() { note('order', '${name} onHttpRequest'); },
       onBeforeApiCall({ parameters }) {
         note('order', '${name} onBeforeApiCall');
         return { parameters: { ...parameters, q: parameters.q + '${name}', pinned: 'no', hidden: 'no', other: 'no' } };
       },
       onAfterApiCall({ response, parameters }) {
         note('order', '${name} onAfterApiCall ' + parameters.q);
         return { data: { ...response.data, by: [...(response.data.by ?? []), '${name}'] } };
       },
       onBeforeSign({ data }) { note('order', '${name} onBeforeSign'); return { data: data + '0${name}' }; }`,
        );

      const upstream = await upstreamFor(suite);
      upstream.text('/a', '{"n": 12345678901234567891}');
      const sources = Object.fromEntries(['b', 'a', 'c'].map((name) => [name, wrap(add(name))]));
      const { files, plugins } = pluginFiles(sources, { b: { isolate }, a: { isolate }, c: { isolate } });
      const parameters = [
        { name: 'q' },
        { name: 'pinned', fixed: 'yes' },
        { name: 'hidden', secret: true, default: 'kept' },
      ];
      const encoding = { type: 'uint256', path: '$.n' };
      const endpoints = { encoded: { path: '/a', parameters, encoding }, raw: { path: '/a', parameters } };
      const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
      beforeEach(() => notes.clear());

      it('each hook sees what the one before it returned', async () => {
        const { rawData } = await verifyRaw(await service.post('api/raw', { q: '-' }), service.signer.address);
        assert.deepEqual(rawData, { n: 12345678901234567000, by: ['b', 'a', 'c'] });
        const stages = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall -bac'];
        const order = stages.flatMap((stage) => ['b', 'a', 'c'].map((name) => `${name} ${stage}`));
        assert.deepEqual(notes.of('order'), order);
      });

      it('fixed and secret values stay, undeclared ones do not reach the upstream', async () => {
        await (await service.post('api/raw', { q: '-' })).text();
        assert.equal(upstream.requests.at(-1)?.path, '/a?q=-bac&pinned=yes&hidden=kept');
      });

      it('what onBeforeSign returns is what gets signed and shown', async () => {
        const response = await service.post('api/encoded', { q: '-' });
        const { data } = await verifyEncoded(response, service.signer.address);
        assert.equal(data.slice(66), '0b0a0c');
        assert.deepEqual(notes.of('order').slice(-3), ['b onBeforeSign', 'a onBeforeSign', 'c onBeforeSign']);
        // A plugin replaced the data, so the encoder got the number as standard JSON has it.
        assert.equal(BigInt(data.slice(0, 66)), 12345678901234567000n);
      });
    });
  });
}
