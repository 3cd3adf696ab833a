/** The harness runs the hooks of a plugin as the service does. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as viaPackage from 'signed-data-proxy/plugins-sdk';
import * as testingViaPackage from 'signed-data-proxy/plugins-sdk/testing';
import { configKey, Type } from '../../plugins-sdk/config-key.ts';
import { ContextKey } from '../../plugins-sdk/context-key.ts';
import { type Behaviour, definePlugin } from '../../plugins-sdk/define.ts';
import type { PublicHooks } from '../../plugins-sdk/hooks/contexts.ts';
import * as sdk from '../../plugins-sdk/index.ts';
import { perMethod, Refusal } from '../../plugins-sdk/index.ts';
import * as testing from '../../service/testing.ts';
import { complaintsOf } from '../support/complaints.ts';
import { block } from '../support/fuzz/situation.ts';

const { testEndpoint, testPlugin } = testing;

const PASSED = { passed: true };
const DROPPED = { refused: { status: 403, message: 'Request dropped by plugin "p"' } };
const EXHAUSTED = { refused: { status: 403, message: 'Plugin "p" budget exhausted' } };

function withHooks(hooks: Partial<PublicHooks>, options?: Parameters<typeof testPlugin>[1]) {
  return testPlugin({ name: 'p', hooks }, options);
}

const never = () => new Promise<never>(() => undefined);

/** All that a hook got, its lazy members evaluated. */
function recorder() {
  const seen: Array<Record<string, unknown>> = [];
  return {
    seen,
    hook: <C extends { signal: AbortSignal }>(context: C) => void seen.push({ ...context, signal: context.signal }),
  };
}

describe('the package', () => {
  it('gives a plugin the very modules that the service runs', () => {
    assert.equal(viaPackage.Refusal, sdk.Refusal);
    assert.equal(viaPackage.ContextKey, sdk.ContextKey);
    assert.equal(viaPackage.Type, sdk.Type);
    assert.deepEqual(Object.keys(viaPackage), Object.keys(sdk));
    assert.deepEqual(Object.keys(testingViaPackage), Object.keys(testing));
    assert.equal(testingViaPackage.TestRequest, testing.TestRequest);
  });
});

describe('a refusal', () => {
  it('has the headers and the body that the client gets, beside what is compared', async () => {
    const harness = await testPlugin({
      name: 'p',
      setup: () => ({
        hooks: {
          admit: () => {
            throw new Refusal(429, 'Later', { headers: { 'Retry-After': '7' }, body: { error: 'Later', left: 0 } });
          },
        },
      }),
    });
    const outcome = await harness.run('admit');
    assert.deepEqual(outcome, { refused: { status: 429, message: 'Later' } });
    assert.ok('refused' in outcome);
    assert.deepEqual(outcome.refused.headers, { 'Retry-After': '7' });
    assert.deepEqual(outcome.refused.body, { error: 'Later', left: 0 });
  });
});

describe('services', () => {
  it('take work in the background, whose failures are complaints', async () => {
    const done: string[] = [];
    const harness = await testPlugin({
      name: 'p',
      setup: ({ background }) => {
        const onHttpRequest = ({ ip }: { readonly ip: string }) => {
          background(ip === '::1' ? Promise.reject(new Error('lost')) : turn().then(() => done.push(ip)));
        };
        // What is no promise a type would refuse.
        return { hooks: { onHttpRequest, onBeforeSign: () => Reflect.apply(background, undefined, [() => 1]) } };
      },
    });
    await harness.run('onHttpRequest', { ip: '::1' });
    await harness.run('onHttpRequest', { ip: '::2' });
    assert.deepEqual([...done], []);
    await harness.background();
    assert.deepEqual(done, ['::2']);
    assert.deepEqual(await harness.run('onBeforeSign'), DROPPED);
    assert.deepEqual(complaintsOf(harness), [
      ['background', 'Error: lost'],
      ['onBeforeSign', 'TypeError: services.background takes a promise'],
    ]);
  });

  it('describe what the plugin says of itself', async () => {
    const scheme = { type: 'http', scheme: 'bearer' };
    let schemes: unknown;
    await testPlugin({
      name: 'p',
      openapi: () => ({ auth: { free: { scheme } } }),
      setup: ({ describe }) => {
        ({ securitySchemes: schemes } = Object(describe().document.components));
        return {};
      },
    });
    assert.deepEqual(schemes, { free: scheme });
  });
});

describe('onHttpRequest', () => {
  it('gives a hook the request with headers in lower case and without credentials', async () => {
    const { seen, hook } = recorder();
    const credentials = ['X-Api-Key', 'X-Payment-Proof'];
    const harness = await testPlugin({ name: 'p', hooks: { onHttpRequest: hook } }, { services: { credentials } });
    const headers = { 'X-Tenant': 'a', 'X-Api-Key': 'secret', 'x-payment-proof': '{}' };
    const outcome = await harness.run('onHttpRequest', { ip: '10.0.0.1', parameters: { symbol: 'ETH' }, headers });
    assert.deepEqual(outcome, PASSED);
    const [{ requestId, signal, ...rest } = {}] = seen;
    assert.match(String(requestId), /^0x[0-9a-f]{64}$/);
    assert.ok(signal instanceof AbortSignal && !signal.aborted);
    assert.deepEqual(rest, {
      endpointId: `0x${'11'.repeat(32)}`,
      api: 'test-api',
      endpoint: 'test-endpoint',
      parameters: { symbol: 'ETH' },
      headers: { 'x-tenant': 'a' },
      ip: '10.0.0.1',
    });
  });

  it('has defaults for everything', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({ onHttpRequest: hook });
    assert.deepEqual(await harness.run('onHttpRequest'), PASSED);
    const [{ parameters, headers, ip } = {}] = seen;
    assert.deepEqual({ parameters, headers, ip }, { parameters: {}, headers: {}, ip: '127.0.0.1' });
  });

  it('tells with what a request was rejected, which is no complaint', async () => {
    const harness = await withHooks({ onHttpRequest: () => ({ reject: true, status: 418, message: 'Tea' }) });
    assert.deepEqual(await harness.run('onHttpRequest'), { refused: { status: 418, message: 'Tea' } });
    assert.deepEqual(harness.complaints, []);
  });

  it('names the plugin that gave no message', async () => {
    const harness = await withHooks({ onHttpRequest: () => ({ reject: true }) });
    assert.deepEqual(await harness.run('onHttpRequest'), {
      refused: { status: 403, message: 'Request rejected by plugin "p"' },
    });
  });

  it('hands over a frozen copy of the parameters', async () => {
    const parameters = { list: [1, 2] };
    const harness = await withHooks({
      onHttpRequest: (context) => {
        (context.parameters.list as number[]).push(3);
      },
    });
    assert.deepEqual(await harness.run('onHttpRequest', { parameters }), DROPPED);
    assert.deepEqual(parameters, { list: [1, 2] });
    assert.equal(Object.isFrozen(parameters), false);
    const [complaint] = harness.complaints;
    assert.equal(complaint?.hook, 'onHttpRequest');
    assert.equal(complaint?.message, 'TypeError: Cannot add property 2, object is not extensible');
    assert.match(complaint?.detail ?? '', /\n {4}at .*harness\.test\.ts/);
  });
});

describe('the hooks that may change something', () => {
  it('onBeforeApiCall', async () => {
    const harness = await withHooks({
      onBeforeApiCall: ({ parameters }) => (parameters.keep ? undefined : { parameters: { ...parameters, b: 2 } }),
    });
    assert.deepEqual(await harness.run('onBeforeApiCall', { parameters: { a: 1 } }), { value: { a: 1, b: 2 } });
    assert.deepEqual(await harness.run('onBeforeApiCall', { parameters: { keep: true } }), PASSED);
    assert.deepEqual(await harness.run('onBeforeApiCall'), { value: { b: 2 } });
  });

  it('onAfterApiCall', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({
      onAfterApiCall: (context) => {
        hook({ ...context, response: { ...context.response } });
        return context.parameters.keep ? undefined : { data: { wrapped: context.response.data } };
      },
    });
    assert.deepEqual(await harness.run('onAfterApiCall', { data: { price: 1.5 }, status: 201 }), {
      value: { data: { wrapped: { price: 1.5 } }, status: 201 },
    });
    assert.deepEqual(await harness.run('onAfterApiCall', { data: 7, parameters: { keep: 1 } }), PASSED);
    assert.deepEqual(await harness.run('onAfterApiCall'), { value: { data: { wrapped: null }, status: 200 } });
    assert.deepEqual(seen[1]?.response, { data: 7, status: 200 });
    assert.deepEqual(seen[1]?.parameters, { keep: 1 });
  });

  it('onBeforeSign', async () => {
    const harness = await withHooks({ onBeforeSign: ({ data }) => ({ data: data === '0x01' ? '0x02' : data }) });
    assert.deepEqual(await harness.run('onBeforeSign', { data: '0x01' }), { value: '0x02' });
    assert.deepEqual(await harness.run('onBeforeSign', { data: '0x03' }), PASSED);
    assert.deepEqual(await harness.run('onBeforeSign'), PASSED);
  });

  it('are passed when the plugin has none', async () => {
    const harness = await withHooks({});
    assert.deepEqual(
      [
        await harness.run('onHttpRequest'),
        await harness.run('onBeforeApiCall', { parameters: { a: 1 } }),
        await harness.run('onAfterApiCall', { data: 1 }),
        await harness.run('onBeforeSign', { data: '0x01' }),
      ],
      [PASSED, PASSED, PASSED, PASSED],
    );
  });

  it('drop the request on a wrong result, and a complaint says what was wrong', async () => {
    const harness = await withHooks({ onBeforeSign: () => ({ data: '0x1' }) });
    const request = harness.request();
    assert.deepEqual(await request.run('onBeforeSign'), DROPPED);
    const complaints = harness.complaints.map(({ detail: _, ...rest }) => rest);
    assert.deepEqual(complaints, [
      {
        hook: 'onBeforeSign',
        requestId: request.requestId,
        message: 'Error: "data" is no hex string of whole bytes',
      },
    ]);
  });
});

describe('the hooks that only observe', () => {
  it('onResponseSent', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({ onResponseSent: hook });
    await harness.run('onResponseSent', { duration: 12.5 });
    await harness.run('onResponseSent');
    const [first, second] = seen;
    assert.deepEqual([first?.status, first?.duration], [200, 12.5]);
    assert.equal(typeof second?.duration, 'number');
  });

  it('onError', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({ onError: hook });
    await harness.run('onError');
    await harness.run('onError', { status: 400, message: 'Missing required parameter: a', stage: 'validate' });
    const told = seen.map(({ error, stage, status, api }) => [
      error instanceof Error && error.message,
      stage,
      status,
      api,
    ]);
    assert.deepEqual(told, [
      ['API call failed', 'callApi', 502, 'test-api'],
      ['Missing required parameter: a', 'validate', 400, 'test-api'],
    ]);
  });

  it('onError of a request that matches no endpoint', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({ onError: hook });
    await harness.run('onError', {
      status: 404,
      message: 'Endpoint not found',
      stage: 'resolve',
      unknownEndpoint: 'zzz',
    });
    const [{ endpointId, api, endpoint } = {}] = seen;
    assert.deepEqual({ endpointId, api, endpoint }, { endpointId: 'zzz', api: undefined, endpoint: undefined });
  });

  it('complain when they fail, and refuse nothing', async () => {
    const failing = await withHooks({
      onResponseSent: () => {
        throw new RangeError('no route');
      },
    });
    const hanging = await withHooks({ onError: never }, { budget: 5 });
    const requests = [failing.request(), hanging.request()] as const;
    await requests[0].run('onResponseSent');
    await requests[1].run('onError');
    const complaints = [...failing.complaints, ...hanging.complaints].map(({ detail: _, ...rest }) => rest);
    assert.deepEqual(complaints, [
      { hook: 'onResponseSent', requestId: requests[0].requestId, message: 'RangeError: no route' },
      { hook: 'onError', requestId: requests[1].requestId, message: 'its 5 ms were spent in the call' },
    ]);
  });

  it('may throw what is no error', async () => {
    const harness = await withHooks({ onError: () => Promise.reject({ code: 7 }) });
    await harness.run('onError');
    assert.deepEqual(complaintsOf(harness), [['onError', '[object Object]']]);
  });
});

describe('a request', () => {
  it('shares id, parameters and budget among its hooks, the inner ones included', async () => {
    const ids: string[] = [];
    const hooks: Behaviour['hooks'] = {
      onHttpRequest: ({ requestId }) => {
        ids.push(requestId);
        block(5);
      },
      onBeforeApiCall: ({ requestId, parameters }) => void ids.push(requestId, JSON.stringify(parameters)),
      encrypt: () => void block(496),
      onBeforeSign: () => void ids.push('never called'),
    };
    const harness = await testPlugin({ name: 'p', setup: () => ({ hooks }) }, { budget: 500 });
    const request = harness.request({ parameters: { a: 1 } });
    assert.deepEqual(await request.run('onHttpRequest'), PASSED);
    assert.deepEqual(await request.run('onBeforeApiCall'), PASSED);
    assert.deepEqual(await request.run('encrypt', { data: '0x01' }), EXHAUSTED);
    assert.deepEqual(await request.run('onBeforeSign'), EXHAUSTED);
    assert.deepEqual(ids, [request.requestId, request.requestId, '{"a":1}']);
    assert.deepEqual(complaintsOf(harness), [
      ['encrypt', 'its 500 ms were spent in the call'],
      ['onBeforeSign', 'its budget was spent before the call'],
    ]);
  });

  it('has a budget of its own for each call on the harness itself', async () => {
    const answers = [never(), undefined];
    const harness = await withHooks({ onHttpRequest: () => answers.shift() }, { budget: 100 });
    assert.deepEqual(await harness.run('onHttpRequest'), EXHAUSTED);
    assert.deepEqual(await harness.run('onHttpRequest'), PASSED);
  });

  it('has a signal that aborts when the budget ends', async () => {
    const signals: AbortSignal[] = [];
    const onBeforeSign: PublicHooks['onBeforeSign'] = ({ signal }) => {
      signals.push(signal);
      return never();
    };
    await (await withHooks({ onBeforeSign }, { budget: 5 })).run('onBeforeSign');
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true],
    );
  });

  it('goes to the endpoint it names', async () => {
    const { seen, hook } = recorder();
    const harness = await withHooks({ onBeforeSign: hook });
    await harness.run('onBeforeSign', { endpoint: testEndpoint({ api: 'prices', name: 'latest', id: '0xabcd' }) });
    const [{ endpointId, api, endpoint } = {}] = seen;
    assert.deepEqual({ endpointId, api, endpoint }, { endpointId: '0xabcd', api: 'prices', endpoint: 'latest' });
  });
});

describe('a definition', () => {
  const limit = configKey('endpoint', 'limit', Type.Optional(Type.Integer()));
  const left = new ContextKey<string>('left');
  const calls: string[] = [];
  const config = { a: 1 };
  const definition = definePlugin({
    name: 'p',
    budget: 5,
    keys: [limit],
    credentials: ['X-Token'],
    auth: { token: Type.Object({ token: Type.String() }) },
    configSchema: Type.Object({
      a: Type.Integer(),
      deep: Type.Object({ b: Type.Integer({ default: 2 }) }, { default: {} }),
    }),
    setup({ endpoints, node, now }, config) {
      const limits = endpoints.map((endpoint) => limit.of(endpoint));
      return {
        start: () => void calls.push('start'),
        stop: (deadline) => void calls.push(`stop ${deadline}`),
        hooks: {
          onHttpRequest: ({ headers }) => ({
            reject: true,
            message: JSON.stringify({ headers, limits, node, config, at: now() }),
          }),
          onBeforeSign: never,
          authenticate: {
            token: ({ token }, exchange) => {
              if (exchange.headers['x-token'] !== token) throw new Refusal(401, 'Invalid token');
              left.set(exchange, 'ada');
              return true;
            },
          },
          encode: ({ data }) => (data === null ? undefined : { bytes: '0x01', field: 'data', value: '0x01' }),
          encrypt: (data) => (data === '0x01' ? '0x02' : undefined),
          sign: () => {
            throw new Error('no key');
          },
          attest: () => Promise.reject(new Error('no store')),
        },
      };
    },
  });

  it('gets services and config, and is started and stopped', async () => {
    const endpoints = [testEndpoint({ block: { limit: 3 } })];
    const harness = await testPlugin(definition, {
      budget: 'none',
      config: { a: 1 },
      services: { endpoints, now: () => 7 },
    });
    assert.deepEqual(calls, ['start']);
    await harness.stop(250);
    assert.deepEqual(calls, ['start', 'stop 250']);
    const outcome = await harness.run('onHttpRequest', { headers: { 'X-Token': 'secret', accept: '*/*' } });
    const node = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf';
    const message = JSON.stringify({
      headers: { 'x-token': 'secret', accept: '*/*' },
      limits: [3],
      node,
      config: { a: 1, deep: { b: 2 } },
      at: 7,
    });
    assert.deepEqual(outcome, { refused: { status: 403, message } });
  });

  it('keeps its own budget unless the test sets one', async () => {
    assert.deepEqual(await (await testPlugin(definition, { config })).run('onBeforeSign'), EXHAUSTED);
    const harness = await testPlugin(definition, { budget: 7, config });
    assert.deepEqual(await harness.run('onBeforeSign'), EXHAUSTED);
    assert.equal(harness.complaints[0]?.message, 'its 7 ms were spent in the call');
  });

  it('can be run through the inner stages', async () => {
    const harness = await testPlugin(definition, { budget: 'none', config });
    const request = harness.request({ headers: { 'X-Token': 'let me in' } });
    const method = { type: 'token', token: 'let me in' };
    assert.deepEqual(await request.run('authenticate', { variant: 'token', method }), { value: true });
    assert.deepEqual(await request.run('authenticate', { variant: 'token', method: { ...method, token: 'b' } }), {
      refused: { status: 401, message: 'Invalid token' },
    });
    assert.deepEqual(await request.run('encode', { response: { data: 1, status: 200 } }), {
      value: { bytes: '0x01', field: 'data', value: '0x01' },
    });
    assert.deepEqual(await request.run('encode', { response: { data: null, status: 200 } }), PASSED);
    assert.deepEqual(await request.run('encrypt', { data: '0x01' }), { value: '0x02' });
    assert.deepEqual(await request.run('encrypt', { data: '0x03' }), PASSED);
    assert.deepEqual(harness.complaints, []);
  });

  it('needs of a test what has no default', async () => {
    const harness = await testPlugin(definition, { config });
    await assert.rejects(harness.run('encode'), {
      name: 'TypeError',
      message: 'the stage "encode" takes "response", which the test does not give',
    });
  });

  it('has no stage and no variant that is misspelt', async () => {
    const request = (await testPlugin(definition, { config })).request();
    await assert.rejects(request.run('authenticate', { variant: 'tokn', method: { type: 'token' } }), {
      name: 'TypeError',
      message: 'the plugin has no "authenticate" of "tokn", did you mean "token"?',
    });
    await assert.rejects(request.run('present', { variant: 'sync', run: () => assert.fail('run') }), {
      name: 'TypeError',
      message: 'the plugin has no "present" of "sync", there are no variants here',
    });
    await assert.rejects(request.run('encod' as 'encode', { response: { data: 1, status: 200 } }), {
      name: 'TypeError',
      message: 'there is no stage "encod", did you mean "encode"?',
    });
  });

  it('finds what it prepared for the methods of its endpoints, and says that no copy will do', async () => {
    const schema = Type.Object({ token: Type.String() });
    const method = { type: 'token', token: 'let me in' };
    const plugin = definePlugin({
      name: 'p',
      auth: { token: schema },
      setup: ({ endpoints }) => {
        const tokens = perMethod(endpoints, 'token', schema, ({ token }) => token);
        return { hooks: { authenticate: { token: (given) => tokens(given) === 'let me in' || undefined } } };
      },
    });
    const harness = await testPlugin(plugin, { services: { endpoints: [testEndpoint({ auth: [method] })] } });
    assert.deepEqual(await harness.run('authenticate', { variant: 'token', method }), { value: true });
    await harness.run('authenticate', { variant: 'token', method: { ...method } });
    assert.deepEqual(complaintsOf(harness), [
      [
        'authenticate',
        'plugin "p": Error: asked for something that was not prepared at start-up: only the very objects of services.endpoints are, which a test of a plugin gives to testPlugin',
      ],
    ]);
  });

  it('is stopped at the end of the test whose context it has, whatever becomes of the test', async () => {
    const ends: (() => Promise<void>)[] = [];
    let stopped = 0;
    const stop = () => {
      stopped += 1;
    };
    const plugin = definePlugin({ name: 'p', setup: () => ({ stop }) });
    await testPlugin(plugin, { t: { after: (end) => ends.push(end) } });
    const failing = definePlugin({
      name: 'q',
      setup: () => ({ start: () => Promise.reject(new Error('no')), stop }),
    });
    await assert.rejects(testPlugin(failing, { t: { after: (end) => ends.push(end) } }), { message: 'no' });
    assert.equal(stopped, 0);
    for (const end of ends) await end();
    assert.equal(stopped, 2);
  });

  it('complains of what fails in an inner stage, open or closed', async () => {
    const request = { endpointId: '0x01', timestamp: 1, data: '0x' } as const;
    const harness = await testPlugin(definition, { budget: 'none', config });
    assert.deepEqual(await harness.run('sign', { signRequest: request }), {
      refused: { status: 500, message: 'Internal server error' },
    });
    assert.deepEqual(await harness.run('attest'), PASSED);
    assert.deepEqual(complaintsOf(harness), [
      ['sign', 'plugin "p": Error: no key'],
      ['attest', 'Error: no store'],
    ]);
  });
});

describe('a route', () => {
  const json = (value: unknown) => ({ status: 200, body: JSON.stringify(value) });
  const routed = definePlugin({
    name: 'p',
    budget: 50,
    credentials: ['X-Token'],
    setup: () => ({
      routes: [
        {
          method: 'POST',
          path: '/tenants/:name',
          admit: true,
          maxBody: 4,
          handle: ({ params, query, body }, { method, route, headers, socketAddress, resolved }) => {
            const own = { params, query: [...query], body: Buffer.from(body).toString() };
            return json({ ...own, method, route, headers, ip: socketAddress, resolved: resolved ?? null });
          },
        },
        { method: 'GET', path: '/none', admit: false, handle: ({ body }) => json(body.length) },
        { method: 'GET', path: '/odd', admit: false, handle: () => ({ status: 200, body: Uint8Array.of(1) }) },
        { method: 'GET', path: '/never', admit: false, handle: never },
        { method: 'GET', path: '/refuses', admit: false, handle: () => Promise.reject(new Refusal(409, 'Taken')) },
      ],
    }),
  });

  it('gets the request, and its response is what HTTP would carry', async () => {
    const harness = await testPlugin(routed, { budget: 10_000 });
    const input = { params: { name: 'ada' }, query: 'a=1&a=2', body: 'four', headers: { 'X-Token': 't' }, ip: '::1' };
    assert.deepEqual(await harness.run('route', { route: 'POST /tenants/:name', ...input }), {
      value: json({
        params: { name: 'ada' },
        query: [
          ['a', '1'],
          ['a', '2'],
        ],
        body: 'four',
        method: 'POST',
        route: '/tenants/:name',
        headers: { 'x-token': 't' },
        ip: '::1',
        resolved: null,
      }),
    });
    assert.deepEqual(await harness.run('route', { route: 'GET /none', body: 'some' }), { value: json(0) });
  });

  it('is refused as in the service', async () => {
    const harness = await testPlugin(routed);
    const long = await harness.run('route', { route: 'POST /tenants/:name', body: new Uint8Array(5) });
    assert.deepEqual(long, { refused: { status: 413, message: 'Request body too large' } });
    assert.deepEqual(await harness.run('route', { route: 'GET /refuses' }), {
      refused: { status: 409, message: 'Taken' },
    });
    assert.deepEqual(harness.complaints, []);
    assert.deepEqual(await harness.run('route', { route: 'GET /never' }), EXHAUSTED);
    const odd = await harness.run('route', { route: 'GET /odd' });
    assert.deepEqual(odd, { refused: { status: 500, message: 'Internal server error' } });
    const wrong = 'returned something of the wrong shape: bytes need a media type other than JSON';
    assert.deepEqual(complaintsOf(harness), [
      ['route', 'its 50 ms were spent in the call'],
      ['route', `plugin "p": Error: ${wrong}`],
    ]);
  });

  it('has to be one of the plugin’s', async () => {
    const harness = await testPlugin(routed);
    const near = 'did you mean "POST /tenants/:name"?';
    for (const [route, hint] of [
      ['GET /tenants/:name', near],
      ['POST /endpoints/:endpointId', 'variants: POST /tenants/:name, GET /none, GET /odd, GET /never, GET /refuses'],
    ] as const) {
      const message = `the plugin has no "route" of "${route}", ${hint}`;
      await assert.rejects(harness.run('route', { route }), { name: 'TypeError', message });
    }
    await assert.rejects(harness.run('route'), { name: 'TypeError' });
  });
});

describe('observers of the plugin', () => {
  const told: unknown[] = [];
  const observing = definePlugin({
    name: 'p',
    setup: () => ({
      observe: {
        stage: ({ stage, outcome }) => void told.push([stage, outcome]),
        call: ({ stage, outcome }) => void told.push([`call of ${stage}`, outcome]),
        response: ({ route }, status) => void told.push([route, status]),
      },
      hooks: {
        onHttpRequest: ({ ip }) => ({ reject: ip === '::1' }),
        encrypt: () => undefined,
        onResponseSent: () => undefined,
      },
      routes: [{ method: 'GET', path: '/r', admit: false, handle: () => ({ status: 204, body: '' }) }],
    }),
  });
  beforeEach(() => told.splice(0));

  it('are told of stages, of calls and once of the response', async () => {
    const harness = await testPlugin(observing);
    const request = harness.request();
    await request.run('onHttpRequest');
    await request.run('encrypt', { data: '0x01' });
    await request.run('onResponseSent');
    assert.deepEqual(told, [
      ['call of onHttpRequest', 'done'],
      ['onHttpRequest', 'silent'],
      ['call of encrypt', 'done'],
      ['encrypt', 'answered'],
      ['/endpoints/:endpointId', 200],
      ['call of onResponseSent', 'done'],
      ['onResponseSent', 'silent'],
    ]);
  });

  it('are told of a response that is a refusal, or that of a route', async () => {
    const harness = await testPlugin(observing);
    await harness.run('onHttpRequest', { ip: '::1' });
    assert.deepEqual(told.splice(0).slice(1), [
      ['onHttpRequest', 'answered'],
      ['/endpoints/:endpointId', 403],
    ]);
    await harness.run('route', { route: 'GET /r' });
    assert.deepEqual(told.splice(0).slice(1), [
      ['route', 'answered'],
      ['/r', 204],
    ]);
  });

  it('that fail are a complaint', async () => {
    const observe = { response: () => assert.fail('no') };
    const harness = await testPlugin({ name: 'p', setup: () => ({ observe }) });
    await harness.run('onResponseSent');
    assert.deepEqual(complaintsOf(harness), [['observe', 'AssertionError [ERR_ASSERTION]: no']]);
  });
});

describe('testPlugin', () => {
  const faulty = (value: unknown) => testPlugin(value as Parameters<typeof testPlugin>[0]);

  // The start of a service refuses them alike: test/config/cases/stand-ins/plugins.yaml and test/e2e/plugins-routes.test.ts name all of them.
  it('refuses a plugin that the service would not start with', async () => {
    const routes = [{ method: 'GET', path: 'x', admit: true, handle: () => ({ status: 204, body: '' }) }];
    const form = 'has the wrong form, expected: a path that begins with a slash, or * (pattern ^(?:/|\\*$))';
    for (const [plugin, message] of [
      [{ name: 'p' }, 'the plugin has no "hooks", an object of functions'],
      [
        { name: 'p', credential: [], setup: () => ({}) },
        'the plugin: credential: unknown key, did you mean "credentials"?',
      ],
      [{ name: 'p', setup: () => ({ routes }) }, `what "setup" returned: routes[0].path: ${form}`],
    ])
      await assert.rejects(faulty(plugin), { message });
  });

  it('refuses a factory, a budget, a config or a start that the service would not start with', async () => {
    await assert.rejects(
      faulty(() => ({ name: 'p', hooks: {} })),
      {
        message: 'testPlugin takes a plugin: call its factory first',
      },
    );
    for (const budget of [0, 0.5, Infinity, 2 ** 31])
      await assert.rejects(testPlugin({ name: 'p', hooks: {} }, { budget }), {
        message: /^budget: (?:must|expected) /,
      });
    const configured = { name: 'p', configSchema: Type.Object({ max: Type.Integer() }), setup: () => ({}) };
    await assert.rejects(testPlugin(configured, { config: { max: '1', mix: 1 } }), {
      message: 'config.max: expected an integer, found a string\nconfig.mix: unknown key, did you mean "max"?',
    });
    const parser = { parse: () => assert.fail('no') };
    await assert.rejects(testPlugin({ ...configured, configSchema: parser }), { message: 'config: no' });
    await assert.rejects(testPlugin({ name: 'p', setup: () => ({}) }, { config: {} }), {
      message: 'config: the plugin takes no config',
    });
    const failing = { name: 'p', setup: () => ({ start: () => Promise.reject(new Error('no socket')) }) };
    await assert.rejects(faulty(failing), { message: 'no socket' });
  });
});
