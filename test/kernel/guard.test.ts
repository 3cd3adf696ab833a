import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { control, Exchange } from '../../kernel/exchange.ts';
import type { Hooks } from '../../kernel/hooks.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { type Plugin, type Registration, Registry } from '../../kernel/registry.ts';
import { type StageName, stageNames, stageOf } from '../../kernel/stages.ts';
import type { CallContext, HttpResponse, RouteRequest } from '../../kernel/values.ts';
import type {
  AfterApiCallContext,
  BeforeApiCallContext,
  ErrorContext,
  HookContext,
  HttpRequestContext,
} from '../../plugins-sdk/hooks/contexts.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
import { contractsFor } from '../../plugins-sdk/host/result-checks.ts';
import { randomId } from '../../plugins-sdk/lib/eth/random-id.ts';
import { JsonText } from '../../plugins-sdk/lib/json/json-text.ts';
import { AskedQuestion } from '../../plugins-sdk/question.ts';
import { madeHere } from '../../plugins-sdk/results/answers.ts';

const contracts = contractsFor({ signers: [], now: Date.now });

type Table = Readonly<Record<string, unknown>>;

/** Milliseconds that no test can spend by accident. */
const PLENTY = 10_000;

/** Plugins `p`, `q`, … with the tables of hooks and one budget, and what the guard says against them. */
function seal(tables: readonly Table[], budget: number | 'none' = PLENTY, clock?: () => number) {
  const complaints: Array<{ plugin: string; stage: string; requestId: string; error: unknown }> = [];
  const registry = new Registry({
    contracts,
    complain: (complaint) => void complaints.push(complaint),
  });
  for (const [index, { vary, ...hooks }] of tables.entries()) {
    const plugin: Plugin = typeof vary === 'function' ? { hooks, vary: (...args) => vary(...args) } : { hooks };
    registry.register({ name: String.fromCharCode(112 + index), budget, clock, plugin } satisfies Registration);
  }
  return { hooks: asked(registry.seal().hooks), complaints };
}

/** A request to an endpoint. */
function newExchange(headers: Record<string, string> = {}): Exchange {
  const exchange = new Exchange({
    requestId: randomId(),
    method: 'POST',
    route: '/',
    headers,
    socketAddress: '10.0.0.1',
  });
  const auth = [{ type: 'free' }];
  control.resolveTo(exchange, { id: '0x11', api: 'api', name: 'name', mode: 'sync', auth, own: {}, shared: {} });
  return exchange;
}

/** Asks the plugins of a stage, or of one variant of it. */
type Ask = (...args: readonly unknown[]) => Promise<unknown>;

/** How each stage is asked; `v` is the variant of those that have some. Inside an onion is what it comes to untouched. */
function asked(hooks: Hooks): Readonly<Record<StageName, Ask>> {
  const askStage = (stage: StageName): Ask => {
    if (stage === 'answer')
      return async (value, on) => hooks.askAround(stage, value as never, on as never, () => answer);
    if (stage === 'callApi')
      return async (value, on) => hooks.askAround(stage, value as never, on as never, () => response);
    const variant = stageOf(stage).variants === undefined ? '' : 'v';
    return async (...args) => hooks.askFor(stage, variant, ...(args as never));
  };
  return Object.fromEntries(stageNames.map((stage) => [stage, askStage(stage)])) as Record<StageName, Ask>;
}

type Outcome = { value: unknown } | { status: number; message: string; reason: string | undefined };

async function ask(hook: Ask, ...args: unknown[]): Promise<Outcome> {
  try {
    return { value: await hook(...args) };
  } catch (error) {
    const { status, message, reason } = asRefusal(error);
    return { status, message, reason: reason?.split('\n')[0] };
  }
}

const response = Object.freeze({ data: 1, status: 200 });
const parameters = Object.freeze({ a: 1 });
const outgoing = Object.freeze({ method: 'GET', url: 'http://upstream.example/', headers: {}, body: undefined });
const question = new AskedQuestion({
  ...{ parameters, reserved: {}, request: outgoing, requestHash: undefined },
  key: () => 'key',
  requestFor: () => outgoing,
});
/** As the kernel makes it, so that nobody has to recover who signed it. */
const answer = madeHere(
  {
    ...{ node: '0x11', endpointId: '0x11', timestamp: 1, field: 'data', signature: '0x33', proof: undefined },
    ...{ data: '0x01', value: JsonText.stringify('0x01') },
  },
  question,
);

/** What each stage is asked with, but for the exchange. */
const given: { readonly [N in StageName]: readonly unknown[] } = {
  admit: [],
  route: [],
  resolve: ['0x11'],
  parseBody: [{}],
  onHttpRequest: [],
  authenticate: [{ type: 'free' }],
  validate: [parameters],
  present: [async () => '"answer"'],
  vary: [''],
  prepare: [parameters, ''],
  answer: [question],
  onBeforeApiCall: [parameters],
  callApi: [outgoing],
  onAfterApiCall: [response, parameters],
  encode: [response, question],
  encrypt: ['0x01'],
  onBeforeSign: ['0x01'],
  sign: [{ endpointId: '0x11', timestamp: 1, data: '0x01' }],
  attest: [outgoing],
  approve: [answer],
  concluded: [{ kind: 'abandoned' }],
  respond: [{ vary: 'origin' }],
  onResponseSent: [200, answer],
  onError: [new Refusal(502, 'API call failed'), '0x11'],
};

/** What a stage comes to when nobody has anything to say. */
const untouched: { readonly [N in StageName]?: unknown } = {
  validate: parameters,
  vary: '',
  answer,
  onBeforeApiCall: parameters,
  callApi: response,
  onAfterApiCall: response,
  encrypt: '0x01',
  onBeforeSign: '0x01',
  respond: { vary: 'origin' },
};

/** Runs one function at a stage. */
async function run(stage: StageName, fn: unknown, options: { budget?: number | 'none'; exchange?: Exchange } = {}) {
  const { budget = PLENTY, exchange = newExchange() } = options;
  const { hooks, complaints } = seal([{ [stage]: stageOf(stage).variants === undefined ? fn : { v: fn } }], budget);
  const outcome = await ask(hooks[stage], ...given[stage], exchange);
  return { outcome, complaints, exchange };
}

const stages = stageNames.filter((stage) => stage !== 'route');
const fails = (stage: StageName) => stageOf(stage).fails ?? 'closed';
const publicStages = stages.filter((stage) => Object.hasOwn(publicHooks, stage));
const dropping = publicStages.filter((stage) => fails(stage) === 'closed');
const closedInner = stages.filter((stage) => fails(stage) === 'closed' && !Object.hasOwn(publicHooks, stage));
const open = stages.filter((stage) => fails(stage) === 'open');

const DROPPED = 'Request dropped by plugin "p"';
const dropped = (reason: string): Outcome => ({ status: 403, message: DROPPED, reason });
const exhausted = (reason: string): Outcome => ({ status: 403, message: 'Plugin "p" budget exhausted', reason });
const internal = (reason: string): Outcome => ({ status: 500, message: 'Internal server error', reason });
const SPENT_BEFORE = 'its budget was spent before the call';
const spent = (budget: number) => `its ${budget} ms were spent in the call`;

const never = () => new Promise<never>(() => undefined);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Something that a promise would follow. */
function thenable(then: unknown): object {
  return Object.fromEntries([['then', then]]);
}

/** Blocks the event loop for at least so many milliseconds. */
function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

describe('the table of stages', () => {
  it('is what these tests take it for', () => {
    assert.deepEqual(dropping, ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign']);
    assert.deepEqual(open, ['attest', 'concluded', 'respond', 'onResponseSent', 'onError']);
    assert.deepEqual(closedInner, [
      'admit',
      'resolve',
      'parseBody',
      'authenticate',
      'validate',
      'vary',
      'prepare',
      'present',
      'answer',
      'callApi',
      'encode',
      'encrypt',
      'sign',
      'approve',
    ]);
  });
});

describe('the budget', () => {
  it('is shared by all hooks of a plugin in one request, the inner ones included', async () => {
    const calls: string[] = [];
    const spend = (name: string, milliseconds: number) => () => {
      calls.push(name);
      block(milliseconds);
    };
    const { hooks } = seal(
      [
        {
          onHttpRequest: spend('p onHttpRequest', 5),
          encrypt: spend('p encrypt', 496),
          onBeforeSign: spend('p onBeforeSign', 0),
        },
        { onBeforeSign: spend('q onBeforeSign', 0) },
      ],
      500,
    );
    const exchange = newExchange();
    assert.deepEqual(await ask(hooks.onHttpRequest, exchange), { value: undefined });
    assert.deepEqual(await ask(hooks.encrypt, '0x01', exchange), exhausted(spent(500)));
    assert.deepEqual(await ask(hooks.onBeforeSign, '0x01', exchange), exhausted(SPENT_BEFORE));
    assert.deepEqual(calls, ['p onHttpRequest', 'p encrypt']);
    assert.deepEqual(await ask(hooks.onBeforeSign, '0x01', newExchange()), { value: '0x01' });
    assert.deepEqual(calls, ['p onHttpRequest', 'p encrypt', 'p onBeforeSign', 'q onBeforeSign']);
  });

  it('is charged by the clock of its plugin', async () => {
    let time = 0;
    const slow = () => new Promise((resolve) => setTimeout(resolve, 60));
    const { hooks } = seal([{ onHttpRequest: slow }], 20, () => time);
    assert.deepEqual(await ask(hooks.onHttpRequest, newExchange()), { value: undefined });
    const late = () => {
      time += 21;
      return new Promise(() => undefined);
    };
    const { hooks: others } = seal([{ onHttpRequest: late }], 20, () => time);
    assert.deepEqual(await ask(others.onHttpRequest, newExchange()), exhausted(spent(20)));
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
      const reason = 'its 20 ms were spent in what it returned';
      for (const fn of [() => slow(name, 30, value), async () => slow(name, 30, value)]) {
        const { outcome, exchange } = await run(stage, fn, { budget: 20 });
        assert.deepEqual(outcome, exhausted(reason));
        assert.deepEqual(
          (await run(stage, () => undefined, { budget: 20, exchange })).outcome,
          exhausted(SPENT_BEFORE),
        );
      }
    });
  }

  /** Longer than what is read in one turn of the event loop. */
  const rows = Array(100_000).fill('row');

  it('has others go on while a large result is read, and is not charged for their time', async () => {
    let turns = 0;
    const others = () => {
      turns += 1;
      block(200);
      if (turns < 12) setImmediate(others);
    };
    const data = () => {
      setImmediate(others);
      return { data: rows };
    };
    const { outcome } = await run('onAfterApiCall', data, { budget: 2000 });
    assert.ok('value' in outcome, JSON.stringify(outcome).slice(0, 200));
    assert.ok(turns >= 10, `${turns}`);
  });

  it('ends while a large result is read, however late that takes too long', async () => {
    const late = {
      get late() {
        block(1000);
        return 1;
      },
    };
    const { outcome } = await run('onAfterApiCall', () => ({ data: [...rows, late] }), { budget: 1000 });
    assert.deepEqual(outcome, exhausted('its 1000 ms were spent in what it returned'));
  });

  it('is charged for reading what was returned, also when that is not too long', async () => {
    const exchange = newExchange();
    await run('onBeforeSign', () => slow('data', 50, '0x02'), { exchange });
    const { remaining = PLENTY, spent = [] } = control.budgets(exchange).get('p') ?? {};
    assert.ok(remaining <= PLENTY - 50, `${remaining}`);
    assert.deepEqual(
      spent.map(({ stage }) => stage),
      ['onBeforeSign'],
    );
    assert.ok((spent[0]?.milliseconds ?? 0) >= 50, 'what is charged is noted, too');
  });

  it('is charged for reading what an inner stage returned', async () => {
    const exchange = newExchange();
    const result = slow('node', 50, '0x01');
    await run('sign', () => Object.assign(result, { signature: '0x02' }), { exchange });
    const { remaining = PLENTY } = control.budgets(exchange).get('p') ?? {};
    assert.ok(remaining <= PLENTY - 50, `${remaining}`);
  });

  it('is charged for reading what was thrown', async () => {
    const branded = () => Object.assign(slow('status', 30, 418), { [Symbol.for('signed-data-proxy.refusal')]: true });
    const thrown = () => {
      throw branded();
    };
    for (const fn of [thrown, async () => thrown()]) {
      const { outcome } = await run('validate', fn, { budget: 20 });
      assert.deepEqual(outcome, exhausted('its 20 ms were spent in what it threw'));
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

  it('may be none: nothing ends, and the signal is the client’s', async () => {
    const signals: AbortSignal[] = [];
    const fn = async ({ signal }: HookContext) => {
      signals.push(signal);
      block(5);
      await turn();
      return { data: '0x02' };
    };
    const { outcome, exchange } = await run('onBeforeSign', fn, { budget: 'none' });
    assert.deepEqual(outcome, { value: '0x02' });
    assert.deepEqual(signals, [exchange.signal]);
    assert.equal(control.budgets(exchange).size, 0);
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

  it('does not change what a function without a budget gets', async () => {
    const rest = async () => 'answer';
    const seen: unknown[] = [];
    const { hooks } = seal([{ present: { v: (given: unknown) => void seen.push(given) } }], 'none');
    await ask(hooks.present, rest, newExchange());
    assert.deepEqual(seen, [rest]);
  });
});

describe('timers', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

  it('are armed for promises only', async (t) => {
    const armed = t.mock.method(globalThis, 'setTimeout');
    await run('onBeforeSign', () => ({ data: '0x02' }), { budget: 1234 });
    await run('onBeforeSign', () => undefined, { budget: 1234 });
    await run('sign', () => assert.fail('thrown at once'), { budget: 1234 });
    assert.equal(armed.mock.callCount(), 0);
    await run('onBeforeSign', async () => undefined, { budget: 1234 });
    assert.equal(armed.mock.callCount(), 1);
    await run('onBeforeSign', async () => undefined, { budget: 'none' });
    assert.equal(armed.mock.callCount(), 1);
  });

  it('are cleared when the function is done', async () => {
    const before = timers();
    const during: number[] = [];
    const waiting = async () => {
      await turn();
      during.push(timers());
    };
    await run('onBeforeSign', waiting);
    await run('onBeforeSign', async () => Promise.reject(await waiting()));
    assert.deepEqual(during, [before + 1, before + 1]);
    assert.equal(timers(), before);
  });

  it('stand still while the rest of the pipeline works', async () => {
    const before = timers();
    const during: number[] = [];
    const { hooks } = seal([{ present: { v: async (rest: () => Promise<unknown>) => void (await rest()) } }]);
    const rest = async () => {
      await turn();
      during.push(timers());
    };
    await ask(hooks.present, rest, newExchange());
    assert.deepEqual(during, [before]);
    assert.equal(timers(), before);
  });
});

/** Ways to fail, and the first line of what the log says. */
const failures: ReadonlyArray<readonly [name: string, fn: () => unknown, reason: string]> = [
  ['throws', () => assert.fail('boom'), 'AssertionError [ERR_ASSERTION]: boom'],
  ['rejects', () => Promise.reject(new TypeError('boom')), 'TypeError: boom'],
  ['throws a text', raise('boom'), 'boom'],
  ['throws undefined', raise(undefined), 'Error: threw nothing'],
  ['throws null', raise(null), 'Error: threw nothing'],
  ['throws zero', raise(0), '0'],
  ['throws a symbol', raise(Symbol('boom')), 'Symbol(boom)'],
  ['throws what has no text', raise(Object.create(null)), 'an error that cannot be shown'],
  ['throws an error whose stack cannot be read', raise(withoutStack()), 'an error that cannot be shown'],
  ['rejects with undefined', () => Promise.reject(undefined), 'Error: rejected with nothing'],
  ['rejects with null', () => Promise.reject(null), 'Error: rejected with nothing'],
  ['rejects with what has no text', () => Promise.reject(Object.create(null)), 'an error that cannot be shown'],
  ['returns what throws in then', () => thenable(raise(new Error('boom'))), 'Error: boom'],
  ['returns what throws when asked for then', () => throwingGetter('then'), 'Error: boom'],
  ['returns what throws when asked for then again', () => secondTime('then'), 'Error: boom'],
  ['returns what has no readable then', () => hostile(), 'Error: hostile'],
  [
    'answers with a promise that throws in then',
    () => Promise.resolve(thenable(raise(new Error('boom')))),
    'Error: boom',
  ],
  [
    'returns a promise whose own then throws',
    () => Object.assign(Promise.resolve(), thenable(raise(new Error('boom')))),
    'Error: boom',
  ],
];

function raise(what: unknown): () => never {
  return () => {
    throw what;
  };
}

function throwingGetter(name: string): object {
  return Object.defineProperty({}, name, { get: raise(new Error('boom')) });
}

/** A property that can be read once. */
function secondTime(name: string): object {
  let reads = 0;
  const get = () => {
    reads += 1;
    if (reads > 1) throw new Error('boom');
    return () => undefined;
  };
  return Object.defineProperty({}, name, { get });
}

function hostile(): object {
  const trap = raise(new Error('hostile'));
  return new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap });
}

function withoutStack(): Error {
  return Object.defineProperty(new Error('boom'), 'stack', { get: raise(new Error('hidden')) });
}

describe('a function that fails', () => {
  for (const [name, fn, reason] of failures) {
    it(`and ${name}`, async () => {
      for (const stage of dropping) assert.deepEqual((await run(stage, fn)).outcome, dropped(reason), stage);
      for (const stage of closedInner) {
        assert.deepEqual((await run(stage, fn)).outcome, internal(`plugin "p": ${reason}`), stage);
      }
      for (const stage of open) {
        const { outcome, complaints, exchange } = await run(stage, fn);
        assert.deepEqual(outcome, { value: untouched[stage] }, stage);
        assert.deepEqual(
          complaints.map((complaint) => [complaint.plugin, complaint.stage, complaint.requestId]),
          [['p', stage, exchange.requestId]],
        );
      }
    });

    it(`without a budget and ${name}`, async () => {
      assert.deepEqual((await run('onBeforeSign', fn, { budget: 'none' })).outcome, dropped(reason));
      assert.deepEqual((await run('sign', fn, { budget: 'none' })).outcome, internal(`plugin "p": ${reason}`));
    });
  }

  it('after another that was asynchronous', async () => {
    const { hooks } = seal([{ onBeforeSign: async () => undefined }, { onBeforeSign: raise(Object.create(null)) }]);
    const { status, message } = asRefusal(await hooks.onBeforeSign('0x01', newExchange()).catch((e) => e));
    assert.deepEqual([status, message], [403, 'Request dropped by plugin "q"']);
  });

  it('throws what cannot be read', async () => {
    assert.deepEqual((await run('onBeforeSign', raise(hostile()))).outcome, dropped('an error that cannot be shown'));
    assert.deepEqual((await run('onError', raise(hostile()))).outcome, { value: undefined });
  });

  it('returns a promise that cannot be resolved', async () => {
    const broken = () => Object.defineProperty(Promise.resolve(), 'constructor', { get: raise(new Error('boom')) });
    const budget = 'none';
    assert.deepEqual((await run('onBeforeSign', broken, { budget })).outcome, dropped('Error: boom'));
    assert.deepEqual((await run('onError', broken, { budget })).outcome, { value: undefined });
  });

  it('is told about with the very error', async () => {
    const error = new Error('boom');
    const { complaints } = await run('concluded', raise(error));
    assert.equal(complaints[0]?.error, error);
  });

  it('cannot choose an answer in a public hook: a refusal is a drop there', async () => {
    for (const stage of dropping) {
      const { outcome } = await run(stage, raise(new Refusal(402, 'Pay')));
      assert.deepEqual(outcome, dropped('Pay'), stage);
    }
  });

  it('is passed on as it is when it threw a refusal in an inner stage', async () => {
    const refusal = new Refusal(402, 'Pay', { body: { price: 1 }, headers: { 'x-a': 'b' }, failure: false });
    for (const stage of closedInner) {
      for (const fn of [raise(refusal), () => Promise.reject(refusal)]) {
        const { hooks } = seal([{ [stage]: stageOf(stage).variants === undefined ? fn : { v: fn } }]);
        const error: unknown = await hooks[stage](...given[stage], newExchange()).catch((caught) => caught);
        const { status, message, body, headers, reason, failure } = asRefusal(error);
        const expected = { status: 402, message: 'Pay', body: { price: 1 }, headers: { 'x-a': 'b' }, failure: false };
        assert.deepEqual(
          { status, message, body, headers, reason, failure },
          { ...expected, reason: undefined },
          stage,
        );
      }
    }
  });

  it('is passed on when the refusal is that of another copy of the SDK', async () => {
    const foreign = Object.assign(new Error('Pay'), { [Symbol.for('signed-data-proxy.refusal')]: true, status: 402 });
    assert.deepEqual((await run('sign', raise(foreign))).outcome, { status: 402, message: 'Pay', reason: undefined });
  });

  it('is complained about also when it threw a refusal, where the stage is open', async () => {
    const refusal = new Refusal(503, 'Server busy');
    const { outcome, complaints } = await run('attest', raise(refusal));
    assert.deepEqual(outcome, { value: undefined });
    assert.equal(complaints[0]?.error, refusal);
  });

  it('does not keep the others from being asked, where the stage is open', async () => {
    const seen: string[] = [];
    const tables = [raise(new Error('boom')), () => Promise.reject(new Error('boom'))].map((fn) => ({
      attest: fn,
      concluded: fn,
      onError: fn,
      respond: fn,
    }));
    const last = {
      attest: () => ({ a: 1 }),
      concluded: () => void seen.push('concluded'),
      onError: () => void seen.push('onError'),
      respond: (headers: object) => ({ ...headers, a: 'b' }),
    };
    const { hooks, complaints } = seal([...tables, last]);
    assert.deepEqual(await ask(hooks.attest, outgoing, newExchange()), { value: { a: 1 } });
    assert.deepEqual(await ask(hooks.concluded, ...given.concluded, newExchange()), { value: undefined });
    assert.deepEqual(await ask(hooks.onError, ...given.onError, newExchange()), { value: undefined });
    assert.deepEqual(await ask(hooks.respond, {}, newExchange()), { value: { a: 'b' } });
    assert.deepEqual(seen, ['concluded', 'onError']);
    const culprits = complaints.map(({ plugin, stage }) => `${plugin} ${stage}`);
    const expected = ['attest', 'concluded', 'onError', 'respond'].flatMap((stage) => [`p ${stage}`, `q ${stage}`]);
    assert.deepEqual(culprits, expected);
  });

  it('keeps the others from being asked, where the stage is closed', async () => {
    const { hooks } = seal([{ encrypt: raise(new Error('boom')) }, { encrypt: () => assert.fail('asked') }]);
    assert.deepEqual(await ask(hooks.encrypt, '0x01', newExchange()), internal('plugin "p": Error: boom'));
  });
});

describe('a thenable', () => {
  const answered = (then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void) =>
    run('onBeforeSign', () => thenable(then));

  it('that never calls back ends with the budget', async () => {
    const { outcome } = await run('onBeforeSign', () => thenable(() => undefined), { budget: 5 });
    assert.deepEqual(outcome, exhausted(spent(5)));
  });

  it('counts once', async () => {
    const twice = await answered((resolve, reject) => {
      resolve({ data: '0x02' });
      resolve({ data: '0x03' });
      reject(new Error('boom'));
      throw new Error('boom');
    });
    assert.deepEqual(twice.outcome, { value: '0x02' });
    const other = await answered((resolve, reject) => {
      reject(new Error('first'));
      resolve({ data: '0x02' });
    });
    assert.deepEqual(other.outcome, dropped('Error: first'));
  });

  it('is followed to its end', async () => {
    const { outcome } = await answered((resolve) => resolve(Promise.resolve({ data: '0x02' })));
    assert.deepEqual(outcome, { value: '0x02' });
  });

  it('needs a function: other values called then are none', async () => {
    const { outcome } = await run('onBeforeSign', () => Object.assign(thenable(true), { data: '0x02' }));
    assert.deepEqual(outcome, { value: '0x02' });
  });
});

class Box {
  readonly a = 1;
}
const cycle: { self?: unknown } = {};
cycle.self = cycle;
const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
const doubled = Array.from({ length: 40 }).reduce<unknown>((inner) => [inner, inner], 1);
const NO_JSON = [
  NaN,
  Infinity,
  1n,
  Symbol('a'),
  () => 1,
  new Date(0),
  new Map(),
  new Box(),
  cycle,
  nested(300),
  doubled,
];

/** What the public hooks may not return: value and reason. */
const wrong: Readonly<Record<string, ReadonlyArray<readonly [unknown, string]>>> = {
  onHttpRequest: [
    ...[null, true, 0, '', 'no', [], {}, { rejected: true }, () => 1].map(
      (value) => [value, 'Error: returned no object with "reject"'] as const,
    ),
    ...['true', 1, null, undefined].map((reject) => [{ reject }, 'Error: "reject" is no boolean'] as const),
    ...[399, 600, 403.5, NaN, '403', null].map(
      (status) => [{ reject: true, status }, 'Error: "status" is no HTTP error status'] as const,
    ),
    ...[1, null, {}].map((message) => [{ reject: true, message }, 'Error: "message" is no string'] as const),
    [{ reject: true, message: 'a'.repeat(8193) }, 'Error: "message" is longer than 8192 characters'],
    [throwingGetter('reject'), 'Error: boom'],
    [hostile(), 'Error: hostile'],
  ],
  onBeforeApiCall: [
    ...[null, true, [], {}, 'a'].map((value) => [value, 'Error: returned no object with "parameters"'] as const),
    ...[null, undefined, [], 'a', 1].map(
      (value) => [{ parameters: value }, 'Error: "parameters" is no object'] as const,
    ),
    ...NO_JSON.map((a) => [{ parameters: { a } }, reasonOf(a)] as const),
    [throwingGetter('parameters'), 'Error: boom'],
  ],
  onAfterApiCall: [
    ...[null, true, [], {}, { status: 200 }].map((value) => [value, 'Error: returned no object with "data"'] as const),
    ...[99, 600, 200.5, '200', null].map(
      (status) => [{ data: 1, status }, 'Error: "status" is no HTTP status'] as const,
    ),
    ...NO_JSON.map((data) => [{ data }, reasonOf(data)] as const),
  ],
  onBeforeSign: [
    ...[null, true, [], {}, '0x01', new Uint8Array(2)].map(
      (value) => [value, 'Error: returned no object with "data"'] as const,
    ),
    ...[null, 1, '', '01', '0x1', '0xzz', '0X01', '0x01\n', ' 0x01', new Uint8Array(2)].map(
      (data) => [{ data }, 'Error: "data" is no hex string of whole bytes'] as const,
    ),
  ],
};

function reasonOf(value: unknown): string {
  if (value instanceof Date || value instanceof Map || value instanceof Box) return 'Error: holds a class instance';
  if (typeof value === 'object') return 'Error: is too deep, too large or in a cycle';
  return `Error: holds a ${typeof value}, which JSON cannot carry`;
}

/** `test/sdk/result-checks.test.ts` has the texts. */
const WRONG_SHAPE =
  /^plugin "p": Error: returned an? (?:something|answer|generator)|returned something of the wrong shape/;

/** What the other stages may not return. */
const wrongInside: { readonly [N in StageName]?: readonly unknown[] } = {
  admit: [null, false, 1, {}],
  resolve: [null, true, {}, { id: 1 }, '0x11'],
  parseBody: [null, true, 'a'],
  authenticate: [null, false, 1, 'ada'],
  validate: [null, true, 'a'],
  present: [null, {}, { status: 200 }, { status: '200', body: '' }, { status: 200, body: {} }],
  vary: [null, 1, {}, 'a'.repeat(4097)],
  prepare: [null, {}, { ...question }],
  answer: [null, true, {}, { json: {} }, { json: answer.json }],
  callApi: [null, {}, { status: 200 }, { status: 200.5, data: 1 }, { status: 200, data: undefined }],
  encode: [null, {}, { bytes: '0x0', field: 'data' }, { bytes: '0x01' }],
  encrypt: [null, '', '0x', '0x1', 1],
  sign: [null, {}, { node: '0x01' }, { node: '0x01', signature: 'no' }],
  attest: [null, true, 'a'],
  approve: [null, false, 1, {}],
  respond: [null, true, 'a'],
};

describe('a result of the wrong shape', () => {
  for (const stage of dropping) {
    it(`drops the request in ${stage}`, async () => {
      const cases = wrong[stage] ?? [];
      assert.ok(cases.length > 0);
      for (const [index, [value, reason]] of cases.entries()) {
        for (const fn of [() => value, async () => value]) {
          const { outcome } = await run(stage, fn);
          assert.deepEqual(outcome, dropped(reason), `${stage} ${index}`);
        }
      }
    });
  }

  for (const stage of closedInner) {
    it(`is a 500 in ${stage}`, async () => {
      const values = wrongInside[stage] ?? [];
      assert.ok(values.length > 0);
      for (const value of values) {
        const { outcome } = await run(stage, () => value);
        const { reason, ...refused } = { reason: undefined, ...outcome };
        assert.deepEqual(refused, { status: 500, message: 'Internal server error' });
        assert.match(reason ?? '', WRONG_SHAPE);
      }
    });
  }

  for (const stage of ['attest', 'respond'] as const) {
    it(`is complained about in ${stage}`, async () => {
      for (const value of wrongInside[stage] ?? []) {
        const { outcome, complaints } = await run(stage, () => value);
        assert.deepEqual(outcome, { value: untouched[stage] });
        assert.deepEqual(
          complaints.map(({ error }) => WRONG_SHAPE.test(`plugin "p": ${error}`)),
          [true],
        );
      }
    });
  }

  it('is headers that no client takes', async () => {
    const fits = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`x-${i}`, 'a'.repeat(90)]));
    assert.deepEqual((await run('respond', () => fits)).outcome, { value: Object.assign({}, untouched.respond, fits) });
    const { outcome, complaints } = await run('respond', () => ({ ...fits, 'x-80': 'a'.repeat(1024) }));
    assert.deepEqual(outcome, { value: untouched.respond });
    const message = 'Error: returned something of the wrong shape: the headers are longer than 8192 characters';
    assert.deepEqual(
      complaints.map(({ error }) => String(error)),
      [message],
    );
  });

  it('is a generator, of whatever kind: its steps are not those of reading a result', async () => {
    const reason = 'plugin "p": Error: returned a generator: no hook is a generator function';
    const steps: string[] = [];
    const generators = [
      function* () {
        yield steps.push('sync');
      },
      async function* () {
        yield steps.push('async');
      },
    ];
    for (const fn of generators)
      for (const stage of closedInner) assert.deepEqual((await run(stage, fn)).outcome, internal(reason), stage);
    assert.deepEqual(steps, []);
  });

  it('cannot be: what observers return is nobody’s business', async () => {
    for (const stage of ['concluded', 'onResponseSent', 'onError'] as const) {
      for (const value of [null, false, 1, 'a', {}, []]) {
        const { outcome, complaints } = await run(stage, async () => value);
        assert.deepEqual({ outcome, complaints }, { outcome: { value: undefined }, complaints: [] });
      }
    }
  });

  it('is one more way to drop: parameters that are an instance of a class', async () => {
    const { outcome } = await run('onBeforeApiCall', () => ({ parameters: new Map([['a', 1]]) }));
    assert.deepEqual(outcome, dropped('Error: "parameters" is no object'));
  });
});

describe('a result of the right shape', () => {
  const accepted = async (stage: StageName, value: unknown) => (await run(stage, () => value)).outcome;

  it('of onHttpRequest', async () => {
    assert.deepEqual(await accepted('onHttpRequest', { reject: false, status: 'x' }), { value: undefined });
    const rejections = [
      [{ reject: true }, 403, 'Request rejected by plugin "p"'],
      [{ reject: true, status: undefined, message: undefined }, 403, 'Request rejected by plugin "p"'],
      [{ reject: true, status: 400, message: '' }, 400, ''],
      [{ reject: true, status: 599, message: 'No' }, 599, 'No'],
    ] as const;
    for (const [value, status, message] of rejections) {
      const { hooks } = seal([{ onHttpRequest: () => value }, { onHttpRequest: () => assert.fail('asked') }]);
      const refusal = asRefusal(await hooks.onHttpRequest(newExchange()));
      assert.deepEqual([refusal.status, refusal.message, refusal.body], [status, message, { error: message }]);
    }
  });

  it('with no member misspelt: what it would have said must not be ignored', async () => {
    const misspelt = [
      ['onHttpRequest', { reject: true, stauts: 429 }, 'stauts', 'status'],
      ['onHttpRequest', { reject: true, mesage: 'No' }, 'mesage', 'message'],
      ['onBeforeApiCall', { parameters: {}, Parameters: {} }, 'Parameters', 'parameters'],
      ['onAfterApiCall', { data: 1, Status: 500 }, 'Status', 'status'],
      ['onBeforeSign', { data: '0x02', Data: '0x03' }, 'Data', 'data'],
    ] as const;
    for (const [stage, value, name, meant] of misspelt) {
      const reason = `Error: returned a member "${name}", did you mean "${meant}"?`;
      assert.deepEqual(await accepted(stage, value), dropped(reason), stage);
    }
    assert.deepEqual(await accepted('onBeforeSign', { data: '0x02', why: 'because' }), { value: '0x02' });
  });

  it('of onBeforeApiCall', async () => {
    const data = JSON.parse('{"a":[1,{"b":null}],"__proto__":{"c":true},"":"\\ud800"}');
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: data }), { value: data });
    const sparse = { a: undefined, b: [undefined, 1], c: { d: undefined } };
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: sparse }), { value: { b: [null, 1], c: {} } });
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: nullPrototype() }), { value: { a: 1 } });
  });

  it('of onAfterApiCall', async () => {
    assert.deepEqual(await accepted('onAfterApiCall', { data: null }), { value: { data: null, status: 200 } });
    assert.deepEqual(await accepted('onAfterApiCall', { data: [1], status: 404 }), {
      value: { data: [1], status: 404 },
    });
  });

  it('of onBeforeSign', async () => {
    assert.deepEqual(await accepted('onBeforeSign', { data: '0x' }), { value: '0x' });
    assert.deepEqual(await accepted('onBeforeSign', { data: '0xABcd' }), { value: '0xABcd' });
  });

  it('may always be undefined', async () => {
    for (const stage of stages) {
      const { outcome, complaints } = await run(stage, () => undefined);
      assert.deepEqual({ outcome, complaints }, { outcome: { value: untouched[stage] }, complaints: [] }, stage);
    }
  });
});

function nullPrototype(): object {
  return Object.assign(Object.create(null), { a: 1 });
}

describe('what a hook gets', () => {
  it('cannot be written to', async () => {
    const writes: Array<readonly [StageName, (context: never) => unknown]> = [
      [
        'onHttpRequest',
        (context: { ip: string }) => {
          context.ip = '::1';
        },
      ],
      [
        'onHttpRequest',
        (context: { added?: number }) => {
          context.added = 1;
        },
      ],
      [
        'onHttpRequest',
        (context: { headers: { a?: string } }) => {
          context.headers.a = 'b';
        },
      ],
      [
        'onHttpRequest',
        (context: { parameters: { b?: number } }) => {
          context.parameters.b = 1;
        },
      ],
      [
        'onBeforeApiCall',
        (context: { parameters: { a?: number } }) => {
          delete context.parameters.a;
        },
      ],
      [
        'onAfterApiCall',
        (context: { response: { status: number } }) => {
          context.response.status = 500;
        },
      ],
      [
        'onAfterApiCall',
        (context: { response: { data: unknown } }) => {
          context.response.data = 2;
        },
      ],
      [
        'onBeforeSign',
        (context: { data: string }) => {
          context.data = '0x02';
        },
      ],
      [
        'onBeforeSign',
        (context: { signal?: unknown }) => {
          context.signal = undefined;
        },
      ],
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
    await hooks.ask('onHttpRequest', newExchange({ 'x-token': 'secret', accept: '*/*' }));
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
      return { value: await registry.seal().hooks.askFor('route', 'GET /', request, exchange) };
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
