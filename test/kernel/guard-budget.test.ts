/** A plugin has one budget for all its functions in a request: time is charged to whoever spends it, and to nobody else. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { control } from '../../kernel/exchange.ts';
import type { CallEvent } from '../../kernel/hooks.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { register } from '../../kernel/registry.ts';
import type { CallContext } from '../../kernel/values.ts';
import type { ErrorContext, HookContext } from '../../plugins-sdk/hooks/contexts.ts';
import type { AroundCall } from '../../plugins-sdk/stage-functions.ts';
import { block } from '../support/fuzz/situation.ts';
import {
  ask,
  closedInner,
  contracts,
  dropping,
  exhausted,
  given,
  never,
  newExchange,
  open,
  PLENTY,
  response,
  run,
  SPENT_BEFORE,
  seal,
  spent,
  thenable,
  turn,
  untouched,
} from './guarded.ts';

describe('the budget', () => {
  it('of a built-in ends its request as that of an operator’s plugin does, and is told of in full', async () => {
    const hanging = async (fn: () => unknown) => {
      const plugin = { name: 'p', budget: 5, isBuiltin: true, plugin: { hooks: { sign: fn } } };
      const call = ({ milliseconds }: CallEvent) => assert.ok(milliseconds >= 5, `${milliseconds}`);
      const { hooks } = register([plugin], { contracts, complain: () => undefined, observer: { call } });
      const request = { endpointId: '0x11', timestamp: 1, data: '0x01' } as const;
      return ask(async () => hooks.sign.ask([request, newExchange()]));
    };
    assert.deepEqual(await hanging(never), exhausted(spent(5)));
    for (const fn of [() => block(6), async () => block(6)]) assert.deepEqual(await hanging(fn), exhausted(spent(5)));
  });

  it('that ends is a failure even if the observer that is told of it throws', async () => {
    const call = () => assert.fail('the observer');
    const { hooks } = seal([{ encrypt: never, sign: async () => undefined }], 5, { call });
    for (const stage of ['encrypt', 'sign'] as const)
      await assert.rejects(hooks[stage]('0x01', newExchange()), /^AssertionError.*the observer$/);
  });

  it('of one plugin is not that of another', async () => {
    const { hooks } = seal([{ onHttpRequest: never }, { onBeforeSign: () => ({ data: '0x02' }) }], 100);
    const exchange = newExchange();
    assert.deepEqual(await ask(hooks.onHttpRequest, exchange), exhausted(spent(100)));
    assert.deepEqual(await ask(hooks.onBeforeSign, '0x01', exchange), { value: '0x02' });
  });

  for (const stage of [...dropping, ...closedInner]) {
    it(`ends ${stage} when the function never answers, with its signal aborted`, async () => {
      let signal: AbortSignal | undefined;
      const fn = (...args: CallContext[]) => {
        signal = args.at(-1)?.signal;
        return never();
      };
      const { outcome } = await run(stage, fn, { budget: 5 });
      assert.deepEqual(outcome, exhausted(spent(5)));
      assert.equal(signal?.aborted, true);
    });

    it(`ends ${stage} when the function blocks, whatever it returns`, async () => {
      const { outcome } = await run(stage, () => block(6), { budget: 5 });
      assert.deepEqual(outcome, exhausted(spent(5)));
    });
  }

  it('catches blocking behind an await, in a result, and in an error', async () => {
    const late = async () => {
      await null;
      block(21);
      return { data: '0x02' };
    };
    const inThen = () => thenable((resolve: (value: unknown) => void) => resolve(block(21)));
    const failing = () => {
      block(21);
      throw new Error('late');
    };
    for (const fn of [late, inThen, failing]) {
      const { outcome } = await run('onBeforeSign', fn, { budget: 20 });
      assert.deepEqual(outcome, exhausted(spent(20)));
    }
  });

  /** A result whose one member takes a while to read. */
  const slow = (name: string, milliseconds: number, value: unknown) => {
    const get = () => {
      block(milliseconds);
      return value;
    };
    return Object.defineProperty({}, name, { get, enumerable: true });
  };

  for (const [stage, name, value] of [
    ['onHttpRequest', 'reject', false],
    ['onBeforeApiCall', 'parameters', { a: 2 }],
    ['onAfterApiCall', 'data', 2],
    ['onBeforeSign', 'data', '0x02'],
  ] as const) {
    it(`ends ${stage} when reading what the function returned takes too long`, async () => {
      for (const fn of [() => slow(name, 110, value), async () => slow(name, 110, value)]) {
        const { outcome, exchange } = await run(stage, fn, { budget: 100 });
        assert.deepEqual(outcome, exhausted(spent(100)));
        assert.deepEqual(
          (await run(stage, () => undefined, { budget: 100, exchange })).outcome,
          exhausted(SPENT_BEFORE),
        );
      }
    });
  }

  for (const [what, stage, result] of [
    ['what was returned, also when that is not too long', 'onBeforeSign', () => slow('data', 50, '0x02')],
    ['what an inner stage returned', 'sign', () => Object.assign(slow('node', 50, '0x01'), { signature: '0x02' })],
  ] as const) {
    it(`is charged for reading ${what}`, async () => {
      const exchange = newExchange();
      await run(stage, result, { exchange });
      const { remaining = PLENTY } = control.chargeOf(exchange, 'p') ?? {};
      assert.ok(remaining <= PLENTY - 50, `${remaining}`);
    });
  }

  it('is charged for reading what was thrown', async () => {
    const branded = () => Object.assign(slow('status', 110, 418), { [Symbol.for('signed-data-proxy.refusal')]: true });
    const thrown = () => {
      throw branded();
    };
    for (const fn of [thrown, async () => thrown()]) {
      const { outcome } = await run('validate', fn, { budget: 100 });
      assert.deepEqual(outcome, exhausted(spent(100)));
    }
  });

  it('aborts a signal that is first asked for when it has ended', async () => {
    let context: HookContext | undefined;
    const fn = (given: HookContext) => {
      context = given;
      return never();
    };
    await run('onBeforeSign', fn, { budget: 5 });
    assert.equal(context?.signal.aborted, true);
    assert.equal(context?.signal, context?.signal);
  });

  it('is one signal for all hooks of a plugin in a request', async () => {
    const signals: AbortSignal[] = [];
    const keep = ({ signal }: HookContext) => void signals.push(signal);
    const { hooks } = seal([{ onHttpRequest: keep, onBeforeSign: keep }, { onHttpRequest: keep }]);
    const exchange = newExchange();
    await ask(hooks.onHttpRequest, exchange);
    await ask(hooks.onBeforeSign, '0x01', exchange);
    const [p, q, again] = signals;
    assert.equal(p, again);
    assert.notEqual(p, q);
    control.disconnect(exchange);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true, true, true],
    );
  });

  it('is over for what a function still does', async () => {
    let answer: (value: unknown) => void = () => undefined;
    let fail: (error: unknown) => void = () => undefined;
    const slow = new Promise((resolve) => {
      answer = resolve;
    });
    const broken = new Promise((_, reject) => {
      fail = reject;
    });
    const { hooks, complaints } = seal([{ onBeforeSign: () => slow, encrypt: () => broken }], 5);
    const outcomes = [
      await ask(hooks.onBeforeSign, '0x01', newExchange()),
      await ask(hooks.encrypt, '0x01', newExchange()),
    ];
    answer({ data: '0xbad0' });
    fail(new Error('too late'));
    await turn();
    assert.deepEqual(outcomes, [exhausted(spent(5)), exhausted(spent(5))]);
    assert.deepEqual(complaints, []);
  });

  it('is fresh for each observation, also when all of it was spent before', async () => {
    const calls: string[] = [];
    const { hooks, complaints } = seal(
      [
        {
          onHttpRequest: () => block(201),
          onResponseSent: ({ signal }: HookContext) => {
            calls.push(`onResponseSent ${signal.aborted}`);
            return never();
          },
          onError: ({ signal }: ErrorContext) => void calls.push(`onError ${signal.aborted}`),
          onBeforeSign: () => void calls.push('onBeforeSign'),
        },
      ],
      200,
    );
    const exchange = newExchange();
    assert.deepEqual(await ask(hooks.onHttpRequest, exchange), exhausted(spent(200)));
    assert.deepEqual(await ask(hooks.onResponseSent, ...given.onResponseSent, exchange), { value: undefined });
    assert.deepEqual(await ask(hooks.onError, ...given.onError, exchange), { value: undefined });
    assert.deepEqual(await ask(hooks.onBeforeSign, '0x01', exchange), exhausted(SPENT_BEFORE));
    assert.deepEqual(calls, ['onResponseSent false', 'onError false']);
    assert.deepEqual(
      complaints.map(({ stage, error }) => [stage, asRefusal(error).message]),
      [['onResponseSent', 'Plugin "p" budget exhausted']],
    );
  });

  it('of an observer has a signal that the client cannot abort', async () => {
    const seen: boolean[] = [];
    const exchange = newExchange();
    control.disconnect(exchange);
    await run('onResponseSent', ({ signal }: HookContext) => void seen.push(signal.aborted), { exchange });
    assert.deepEqual(seen, [false]);
  });

  it('may be none: nothing ends, and the signal is the client’s', async () => {
    const signals: AbortSignal[] = [];
    const fn = async (_: unknown, __: unknown, { signal }: CallContext) => {
      signals.push(signal);
      block(5);
      await turn();
      return { data: 2, status: 200 };
    };
    const { exchange } = await run('callApi', fn, { budget: 'none' });
    assert.equal(control.chargeOf(exchange, 'p'), undefined);
    assert.equal(signals[0]?.aborted, false);
    control.disconnect(exchange);
    assert.equal(signals[0]?.aborted, true);
  });

  it('may be none where a plugin waits for others; elsewhere it is a second then', async () => {
    const { outcome } = await run('onBeforeSign', () => new Promise(() => {}), { budget: 'none' });
    const reason = 'its 1000 ms were spent in the call';
    assert.deepEqual(outcome, { status: 403, message: 'Plugin "p" budget exhausted', reason });
  });

  it('is not held by what a function of an around stage gets', async () => {
    const held = async (_: unknown, __: unknown, call: AroundCall<unknown, unknown>) => {
      assert.deepEqual(Object.keys(Object.freeze(call)), []);
      await turn();
      return { data: 2, status: 200 };
    };
    const { outcome } = await run('callApi', held, { budget: 30 });
    assert.deepEqual(outcome, { value: { data: 2, status: 200 } });
  });

  it('is not renewed by work that requests share', async () => {
    const sharing = async (_: unknown, __: unknown, { share, next }: AroundCall<unknown, unknown>) => {
      for (let count = 0; count < 3; count++) await share(`key ${count}`, async () => block(40));
      return next();
    };
    const { outcome } = await run('callApi', sharing, { budget: 100 });
    assert.deepEqual(outcome, exhausted(spent(100)));
  });

  it('is charged once for work that is shared at the same time', async () => {
    const sharing = async (_: unknown, __: unknown, { share, next }: AroundCall<unknown, unknown>) => {
      await Promise.all(['a', 'b', 'c'].map((key) => share(key, () => pause(60))));
      return next();
    };
    const { outcome } = await run('callApi', sharing, { budget: 150 });
    assert.deepEqual(outcome, { value: response });
  });

  it('goes on without an open stage when it ends', async () => {
    for (const stage of open) {
      const { outcome, complaints } = await run(stage, never, { budget: 5 });
      assert.deepEqual(outcome, { value: untouched[stage] }, stage);
      assert.deepEqual(
        complaints.map((complaint) => [complaint.plugin, complaint.stage, asRefusal(complaint.error).reason]),
        [['p', stage, spent(5)]],
      );
    }
  });
});

describe('the time inside the rest of the pipeline', () => {
  const reply = { status: 200, body: '' };
  /** Runs `fn` as a mode with a rest of the pipeline that takes 200 ms in two ways. */
  async function present(fn: (run: () => Promise<unknown>) => unknown, budget: number, rest?: () => Promise<unknown>) {
    const { hooks } = seal([{ present: { v: fn } }], budget);
    const slow = async () => {
      block(100);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return '"answer"';
    };
    return ask(hooks.present, rest ?? slow, newExchange());
  }

  it('is charged to nobody', async () => {
    const fn = async (rest: () => Promise<unknown>) => ({ status: 200, body: String(await rest()) });
    assert.deepEqual(await present(fn, 150), { value: { status: 200, body: '"answer"' } });
  });

  it('does not make the time before and after it free', async () => {
    const fn = async (rest: () => Promise<unknown>) => {
      block(5);
      await rest();
      block(296);
      return reply;
    };
    assert.deepEqual(await present(fn, 300), exhausted(spent(300)));
    const hanging = async (rest: () => Promise<unknown>) => {
      await rest();
      return never();
    };
    assert.deepEqual(await present(hanging, 20), exhausted(spent(20)));
  });

  it('stands still until the last of several calls is back', async () => {
    const waits: Array<() => void> = [];
    const rest = () => new Promise<void>((resolve) => waits.push(resolve));
    const fn = async (run: () => Promise<unknown>) => {
      const [first, second] = [run(), run()];
      waits[0]?.();
      await first;
      setTimeout(() => waits[1]?.(), 150);
      await second;
      return reply;
    };
    assert.deepEqual(await present(fn, 100, rest), { value: reply });
  });

  it('hands on what the rest of the pipeline refuses, and the clock goes on', async () => {
    const busy = async () => {
      throw new Refusal(503, 'Server busy');
    };
    const fn = (rest: () => Promise<unknown>) => rest();
    assert.deepEqual(await present(fn, PLENTY, busy), { status: 503, message: 'Server busy', reason: undefined });
    const stuck = (rest: () => Promise<unknown>) => rest().catch(never);
    assert.deepEqual(await present(stuck, 20, busy), exhausted(spent(20)));
  });

  it('rejects, and never throws, for a function without a budget, too', async () => {
    const rest = () => {
      throw new Refusal(500, 'The request has ended');
    };
    const seen: unknown[] = [];
    const fn = (given: () => Promise<string>) => given().catch(({ message }) => void seen.push(message));
    const { hooks } = seal([{ present: { v: fn } }], 'none');
    await ask(hooks.present, rest, newExchange());
    assert.deepEqual(seen, ['The request has ended']);
  });
});

describe('timers', () => {
  /** Those of at least `least` milliseconds that begin from now on, and those that are ended. */
  function watched(t: TestContext, least: number) {
    const { mock: begun } = t.mock.method(globalThis, 'setTimeout');
    const { mock: ended } = t.mock.method(globalThis, 'clearTimeout');
    const own = () => begun.calls.filter(({ arguments: [, delay = 0] }) => delay >= least);
    return {
      delays: () => own().map(({ arguments: [, delay = 0] }) => Math.ceil(delay)),
      left: () => own().filter(({ result }) => !ended.calls.some(({ arguments: [timer] }) => timer === result)).length,
    };
  }

  it('are armed for promises only', async (t) => {
    const { delays } = watched(t, 1000);
    await run('onBeforeSign', () => ({ data: '0x02' }), { budget: 2 ** 32 });
    await run('onBeforeSign', () => undefined, { budget: 2 ** 32 });
    await run('sign', () => assert.fail('thrown at once'), { budget: 2 ** 32 });
    await run('callApi', async () => undefined, { budget: 'none' });
    assert.deepEqual(delays(), []);
    await run('onBeforeSign', async () => undefined, { budget: 2 ** 32 });
    assert.deepEqual(delays(), [1000]);
  });

  it('count what was used before the promise', async (t) => {
    const { delays } = watched(t, 5);
    await run('onBeforeSign', () => Promise.resolve(block(20)), { budget: 1000 });
    assert.ok((delays()[0] ?? 1000) <= 980);
  });

  it('end with the calls that wait', async (t) => {
    const { left } = watched(t, 1000);
    const during: number[] = [];
    const waiting = async () => {
      await turn();
      during.push(left());
    };
    const budget = 5000;
    await Promise.all([run('onBeforeSign', waiting, { budget }), run('onBeforeSign', waiting, { budget })]);
    await run('onBeforeSign', async () => Promise.reject(await waiting()), { budget });
    assert.deepEqual([during, left()], [[2, 1, 1], 0]);
  });

  it('are of a second at most, and never so short that waiting costs much', async (t) => {
    const { delays } = watched(t, 5);
    await run('onBeforeSign', async () => undefined, { budget: 2 ** 32 });
    await run('onBeforeSign', async () => undefined, { budget: 2 });
    assert.deepEqual(delays(), [1000, 5]);
  });
});
