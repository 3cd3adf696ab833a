/** A function sees what the contract of its stage says, and cannot write to it; a route's handler is held to the same. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { control, Exchange } from '../../kernel/exchange.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { Registry } from '../../kernel/registry.ts';
import type { StageName } from '../../kernel/stages.ts';
import type { CallContext, HttpResponse, RouteRequest } from '../../kernel/values.ts';
import { randomId } from '../../lib/eth/random-id.ts';
import type {
  AfterApiCallContext,
  BeforeApiCallContext,
  ErrorContext,
  HookContext,
  HttpRequestContext,
} from '../../plugins-sdk/hooks/contexts.ts';
import {
  ask,
  block,
  contracts,
  exhausted,
  failures,
  internal,
  never,
  newExchange,
  PLENTY,
  parameters,
  publicStages,
  raise,
  run,
  SPENT_BEFORE,
  seal,
  spent,
  WRONG_SHAPE,
} from './guarded.ts';

describe('what a hook gets', () => {
  it('cannot be written to', async () => {
    const writes: Array<readonly [StageName, (context: never) => unknown]> = [
      ['onHttpRequest', (context: { ip: string }) => Object.assign(context, { ip: '::1' })],
      ['onHttpRequest', (context: object) => Object.assign(context, { added: 1 })],
      ['onHttpRequest', ({ headers }: { headers: object }) => Object.assign(headers, { a: 'b' })],
      ['onHttpRequest', ({ parameters }: { parameters: object }) => Object.assign(parameters, { b: 1 })],
      ['onBeforeApiCall', ({ parameters }: { parameters: { a?: number } }) => delete parameters.a],
      ['onAfterApiCall', ({ response }: { response: object }) => Object.assign(response, { status: 500 })],
      ['onAfterApiCall', ({ response }: { response: object }) => Object.assign(response, { data: 2 })],
      ['onBeforeSign', (context: object) => Object.assign(context, { data: '0x02' })],
      ['onBeforeSign', (context: object) => Object.assign(context, { signal: undefined })],
    ];
    for (const [stage, write] of writes) {
      const { outcome } = await run(stage, write);
      assert.match('reason' in outcome ? (outcome.reason ?? '') : 'accepted', /^TypeError: Cannot /, write.toString());
    }
  });

  it('is each plugin’s own', async () => {
    const data = [{ price: 1 }];
    const contexts: AfterApiCallContext[] = [];
    const spoil = (context: AfterApiCallContext) => {
      contexts.push(context);
      (context.response.data as unknown[]).push('spoiled');
    };
    const keep = (context: AfterApiCallContext) => void contexts.push(context);
    const { hooks } = seal([{ onAfterApiCall: spoil }, { onAfterApiCall: keep }]);
    for (const given of [
      { data, status: 200 },
      { data, status: 200, text: JSON.stringify(data) },
    ]) {
      contexts.splice(0);
      assert.deepEqual(await ask(hooks.onAfterApiCall, given, parameters, newExchange()), { value: given });
      const [spoiled, kept] = contexts;
      assert.notEqual(spoiled, kept);
      assert.deepEqual(spoiled?.response.data, [{ price: 1 }, 'spoiled']);
      assert.deepEqual(kept?.response.data, [{ price: 1 }]);
    }
    assert.deepEqual(data, [{ price: 1 }]);
  });

  it('is what the plugin before returned, as a copy', async () => {
    const mine = { list: [1] };
    const seen: unknown[] = [];
    const later = ({ parameters }: BeforeApiCallContext) => {
      mine.list.push(2);
      seen.push(parameters);
      return { parameters: { ...parameters, b: 2 } };
    };
    const { hooks } = seal([{ onBeforeApiCall: () => ({ parameters: mine }) }, { onBeforeApiCall: later }]);
    const outcome = await ask(hooks.onBeforeApiCall, parameters, newExchange());
    assert.deepEqual(outcome, { value: { list: [1], b: 2 } });
    assert.deepEqual(seen, [{ list: [1] }]);
    const [{ list } = { list: [] }] = seen as Array<{ list: number[] }>;
    assert.equal(Object.isFrozen(list), true);
  });

  it('comes in the order of registration', async () => {
    const append =
      (digit: string) =>
      async ({ data }: { data: string }) => ({ data: `${data}0${digit}` });
    const { hooks } = seal([1, 2, 3].map((digit) => ({ onBeforeSign: append(String(digit)) })));
    assert.deepEqual(await ask(hooks.onBeforeSign, '0x', newExchange()), { value: '0x010203' });
  });

  it('has no headers that carry credentials, whoever was registered first', async () => {
    const seen: unknown[] = [];
    const registry = new Registry({ contracts, complain: () => undefined });
    const onHttpRequest = ({ headers }: HttpRequestContext) => void seen.push(headers);
    registry.register({ name: 'p', budget: 10_000, plugin: { hooks: { onHttpRequest } } });
    registry.register({ name: 'q', budget: 10_000, credentials: ['X-Token'], plugin: {} });
    const { hooks, hidden } = registry.seal();
    await hooks.ask('onHttpRequest', [newExchange({ 'x-token': 'secret', accept: '*/*' })]);
    assert.deepEqual(seen, [{ accept: '*/*' }]);
    assert.deepEqual([...hidden], ['x-token']);
  });

  it('names the request, and nothing else', async () => {
    const seen: unknown[] = [];
    const keep = (context: object) => void seen.push(Object.keys(context));
    const exchange = newExchange();
    for (const stage of publicStages) await run(stage, keep, { exchange });
    // `signal` is made when it is asked for.
    const common = ['requestId', 'endpointId', 'api', 'endpoint'];
    assert.deepEqual(seen, [
      [...common, 'parameters', 'headers', 'ip'],
      [...common, 'parameters'],
      [...common, 'parameters', 'response'],
      [...common, 'data'],
      [...common, 'duration', 'status'],
      ['requestId', 'endpointId', 'api', 'endpoint', 'error', 'stage', 'status', 'signal'],
    ]);
  });

  it('is, for onError, the text of the refusal and not the refusal', async () => {
    const seen: ErrorContext[] = [];
    const refusal = new Refusal(502, 'API call failed', { reason: 'secret', body: { secret: 1 }, stage: 'callApi' });
    const { hooks } = seal([{ onError: (context: ErrorContext) => void seen.push(context) }]);
    const exchange = new Exchange({
      requestId: randomId(),
      method: 'POST',
      route: '/',
      headers: {},
      socketAddress: '',
    });
    await hooks.onError(refusal, 'zzz', exchange);
    const [{ error, stage, status, endpointId, api, endpoint } = assert.fail('not called')] = seen;
    assert.equal(error.message, 'API call failed');
    assert.deepEqual(Object.getOwnPropertyNames(error).toSorted(), ['message', 'stack']);
    assert.deepEqual([stage, status, endpointId, api, endpoint], ['callApi', 502, 'zzz', undefined, undefined]);
  });

  it('is, for observers, a signal that the client cannot abort', async () => {
    const seen: boolean[] = [];
    const exchange = newExchange();
    control.disconnect(exchange);
    await run('onResponseSent', ({ signal }: HookContext) => void seen.push(signal.aborted), { exchange });
    assert.deepEqual(seen, [false]);
  });
});

describe('the handler of a route', () => {
  const reply = (body: string) => ({ status: 200, body });

  // What a handler returns is checked: tests make it return anything.
  async function handled(
    fn: (call: CallContext) => unknown,
    budget: number | 'none' = PLENTY,
    exchange = newExchange(),
  ) {
    const registry = new Registry({ contracts, complain: () => undefined });
    const handle = (_: RouteRequest, __: Exchange, call: CallContext) => fn(call) as HttpResponse;
    registry.register({ name: 'p', budget, plugin: { routes: [{ method: 'GET', path: '/', admit: false, handle }] } });
    const request = { params: {}, query: new URLSearchParams(), body: new Uint8Array() };
    try {
      return { value: await registry.seal().hooks.ask('route', [request, exchange], 'GET /') };
    } catch (error) {
      const { status, message, reason } = asRefusal(error);
      return { status, message, reason: reason?.split('\n')[0] };
    }
  }

  it('answers', async () => {
    assert.deepEqual(await handled(() => reply('"now"')), { value: reply('"now"') });
    assert.deepEqual(await handled(async () => reply('"later"'), 'none'), { value: reply('"later"') });
  });

  it('answers with what HTTP can carry, or with a 500', async () => {
    for (const odd of [null, 'text', {}, { status: 200 }, { status: 199, body: '' }, { status: 600, body: '' }]) {
      const { reason, ...refused } = { reason: undefined, ...(await handled(() => odd)) };
      assert.deepEqual(refused, { status: 500, message: 'Internal server error' });
      assert.match(reason ?? '', WRONG_SHAPE);
    }
    assert.deepEqual(await handled(() => undefined), { value: undefined });
    const headers = { 'x-a': 'b\r\nx-c: d' };
    assert.equal('value' in (await handled(() => ({ ...reply(''), headers }))), false);
  });

  it('may refuse; whatever else it throws is a 500', async () => {
    const refusal = new Refusal(404, 'Request not found');
    assert.deepEqual(await handled(raise(refusal)), { status: 404, message: 'Request not found', reason: undefined });
    for (const [name, fn, reason] of failures) {
      assert.deepEqual(await handled(fn), internal(`plugin "p": ${reason}`), name);
    }
  });

  it('draws from the budget of its plugin', async () => {
    const exchange = newExchange();
    let signal: AbortSignal | undefined;
    const hanging = (given: CallContext) => {
      signal = given.signal;
      return never();
    };
    assert.deepEqual(await handled(hanging, 5, exchange), exhausted(spent(5)));
    assert.equal(signal?.aborted, true);
    assert.deepEqual(await handled(() => 'now', 5, exchange), exhausted(SPENT_BEFORE));
    assert.deepEqual(await handled(() => block(6), 5), exhausted(spent(5)));
  });

  it('has, without a budget, the signal of the client', async () => {
    const exchange = newExchange();
    let seen: AbortSignal | undefined;
    const look = (given: CallContext) => {
      seen = given.signal;
      return reply('');
    };
    assert.deepEqual(await handled(look, 'none', exchange), { value: reply('') });
    assert.equal(seen, exchange.signal);
  });
});
