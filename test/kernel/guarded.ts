/** Plugins behind the guard, the contexts that their functions are given, and what becomes of one function at a stage. */
import assert from 'node:assert/strict';
import { control, Exchange } from '../../kernel/exchange.ts';
import type { Hooks, Observer } from '../../kernel/hooks.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { type Plugin, type Registration, register } from '../../kernel/registry.ts';
import { type StageName, stageNames, stages } from '../../kernel/stages.ts';
import { randomId } from '../../lib/eth/hex.ts';
import { JsonText } from '../../lib/json/json-text.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
import { AskedQuestion } from '../../plugins-sdk/question-and-answer.ts';
import { madeHere } from '../../plugins-sdk/results/answers.ts';
import { contractsFor } from '../../plugins-sdk/results/contracts.ts';

export const contracts = contractsFor({ signers: [], now: Date.now, endpoints: new Set() });

type Table = Readonly<Record<string, unknown>>;

/** Milliseconds that no test can spend by accident. */
export const PLENTY = 10_000;

/** Plugins `p`, `q`, … with the tables of hooks and one budget, and what the guard says against them. */
export function seal(tables: readonly Table[], budget: number | 'none' = PLENTY, observer?: Observer) {
  const complaints: Array<{ plugin: string; stage: string; requestId: string; error: unknown }> = [];
  const plugins = tables.map(({ vary, ...hooks }, index): Registration => {
    const plugin: Plugin = typeof vary === 'function' ? { hooks, vary: (...args) => vary(...args) } : { hooks };
    return { name: String.fromCharCode(112 + index), budget, plugin };
  });
  const complain = (complaint: (typeof complaints)[number]) => void complaints.push(complaint);
  const { hooks } = register(plugins, { contracts, complain, observer });
  return { hooks: asked(hooks), complaints };
}

/** A request to an endpoint. */
export function newExchange(headers: Record<string, string> = {}): Exchange {
  const exchange = new Exchange({
    requestId: randomId(),
    method: 'POST',
    route: '/',
    headers,
    socketAddress: '10.0.0.1',
  });
  const auth = [{ type: 'free' }];
  control.resolveTo(exchange, { id: '0x11', api: 'api', name: 'name', mode: 'sync', auth, block: {}, apiBlock: {} });
  return exchange;
}

/** Asks the plugins of a stage, or of one variant of it. */
type Ask = (...args: readonly unknown[]) => Promise<unknown>;

/** How each stage is asked; `v` is the variant of those that have some. Inside an onion is what it comes to untouched. */
function asked(hooks: Hooks): Readonly<Record<StageName, Ask>> {
  const askStage = (stage: StageName): Ask => {
    if (stage === 'answer')
      return async (value, on) => hooks[stage].askAround(value as never, on as never, () => answer);
    if (stage === 'callApi')
      return async (value, on) => hooks[stage].askAround(value as never, on as never, () => response);
    const variant = stages[stage].variants === undefined ? '' : 'v';
    return async (...args) => hooks[stage].ask(args as never, variant);
  };
  return Object.fromEntries(stageNames.map((stage) => [stage, askStage(stage)])) as Record<StageName, Ask>;
}

type Outcome = { value: unknown } | { status: number; message: string; reason: string | undefined };

export async function ask(hook: Ask, ...args: unknown[]): Promise<Outcome> {
  try {
    return { value: await hook(...args) };
  } catch (error) {
    const { status, message, reason } = asRefusal(error);
    return { status, message, reason: reason?.split('\n')[0] };
  }
}

export const response = Object.freeze({ data: 1, status: 200 });
export const parameters = Object.freeze({ a: 1 });
export const outgoing = Object.freeze({ method: 'GET', url: 'http://upstream.example/', headers: {}, body: undefined });
export const question = new AskedQuestion({
  ...{ parameters, reserved: {}, request: outgoing, requestHash: undefined },
  key: () => 'key',
  requestFor: () => outgoing,
});
/** As the kernel makes it, so that nobody has to recover who signed it. */
export const answer = madeHere(
  {
    ...{ node: '0x11', endpointId: `0x${'11'.repeat(32)}`, timestamp: 1, field: 'data', signature: '0x33' },
    ...{ data: '0x01', value: JsonText.stringify('0x01'), proof: undefined },
  },
  question,
);

/** What each stage is asked with, but for the exchange. */
export const given: { readonly [N in StageName]: readonly unknown[] } = {
  admit: [],
  route: [],
  resolve: ['0x11'],
  parseBody: [{}],
  onHttpRequest: [],
  price: [parameters],
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
  statements: [[], { endpointId: `0x${'11'.repeat(32)}`, timestamp: 1, data: '0x01' }],
  sign: [{ endpointId: `0x${'11'.repeat(32)}`, timestamp: 1, data: '0x01' }],
  attest: [outgoing],
  approve: [answer],
  concluded: [{ kind: 'abandoned' }],
  respond: [{ vary: 'origin' }],
  onResponseSent: [200, answer],
  onError: [new Refusal(502, 'API call failed'), '0x11'],
};

/** What a stage comes to when nobody has anything to say. */
export const untouched: { readonly [N in StageName]?: unknown } = {
  validate: parameters,
  vary: '',
  answer,
  onBeforeApiCall: parameters,
  callApi: response,
  onAfterApiCall: response,
  encrypt: '0x01',
  onBeforeSign: '0x01',
  statements: [],
  respond: { vary: 'origin' },
};

/** Runs one function at a stage. */
export async function run(
  stage: StageName,
  fn: unknown,
  options: { budget?: number | 'none'; exchange?: Exchange; observer?: Observer } = {},
) {
  const { budget = PLENTY, exchange = newExchange(), observer } = options;
  const table = { [stage]: stages[stage].variants === undefined ? fn : { v: fn } };
  const { hooks, complaints } = seal([table], budget, observer);
  const outcome = await ask(hooks[stage], ...given[stage], exchange);
  return { outcome, complaints, exchange };
}

export const askable = stageNames.filter((stage) => stage !== 'route');
const fails = (stage: StageName) => stages[stage].fails ?? 'closed';
const publicStages = askable.filter((stage) => Object.hasOwn(publicHooks, stage));
export const dropping = publicStages.filter((stage) => fails(stage) === 'closed');
export const closedInner = askable.filter((stage) => fails(stage) === 'closed' && !Object.hasOwn(publicHooks, stage));
export const open = askable.filter((stage) => fails(stage) === 'open');

const DROPPED = 'Request dropped by plugin "p"';
export const dropped = (reason: string): Outcome => ({ status: 403, message: DROPPED, reason });
export const exhausted = (reason: string): Outcome => ({ status: 403, message: 'Plugin "p" budget exhausted', reason });
export const internal = (reason: string): Outcome => ({ status: 500, message: 'Internal server error', reason });
export const SPENT_BEFORE = 'its budget was spent before the call';
export const spent = (budget: number) => `its ${budget} ms were spent in the call`;

export const never = () => new Promise<never>(() => undefined);
export const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Something that a promise would follow. */
export function thenable(then: unknown): object {
  return Object.fromEntries([['then', then]]);
}

/** `test/sdk/result-checks.test.ts` has the texts. */
export const WRONG_SHAPE =
  /^plugin "p": Error: returned an? (?:something|answer|generator)|returned something of the wrong shape/;

/** Ways to fail, and the first line of what the log says. */
export const failures: ReadonlyArray<readonly [name: string, fn: () => unknown, reason: string]> = [
  ['throws', () => assert.fail('boom'), 'AssertionError [ERR_ASSERTION]: boom'],
  ['rejects', () => Promise.reject(new TypeError('boom')), 'TypeError: boom'],
  ['throws a text', raise('boom'), 'boom'],
  ['throws undefined', raise(undefined), 'Error: threw nothing'],
  ['throws null', raise(null), 'Error: threw nothing'],
  ['throws zero', raise(0), '0'],
  ['throws a symbol', raise(Symbol('boom')), 'Symbol(boom)'],
  ['throws what has no text', raise(Object.create(null)), 'an error that cannot be shown'],
  ['throws an error whose stack cannot be read', raise(withoutStack()), 'an error that cannot be shown'],
  ['rejects with undefined', () => Promise.reject(undefined), 'Error: threw nothing'],
  ['rejects with null', () => Promise.reject(null), 'Error: threw nothing'],
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
];

export function raise(what: unknown): () => never {
  return () => {
    throw what;
  };
}

export function throwingGetter(name: string): object {
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

export function hostile(): object {
  const trap = raise(new Error('hostile'));
  return new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap });
}

function withoutStack(): Error {
  return Object.defineProperty(new Error('boom'), 'stack', { get: raise(new Error('hidden')) });
}
