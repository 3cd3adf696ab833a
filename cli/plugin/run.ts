import { resolve } from 'node:path';
import { ConfigErrors } from '../../config/findings.ts';
import type { PluginChoice } from '../../config/plugins/load.ts';
import type { Observer } from '../../kernel/hooks.ts';
import { Pipeline } from '../../kernel/pipeline.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import type { Plugin, PluginSet, Registration } from '../../kernel/registry.ts';
import { stages } from '../../kernel/stages.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Definition, EndpointDraft } from '../../plugins-sdk/define.ts';
import { publicHooks } from '../../plugins-sdk/hooks/public-hooks.ts';
import { checkBehaviour } from '../../plugins-sdk/host/check-definition.ts';
import { notReadyAfter } from '../../plugins-sdk/host/plugin-problem.ts';
import { createPluginSet } from '../../plugins-sdk/host/plugin-set.ts';
import type { Exchange } from '../../plugins-sdk/index.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { madeHere } from '../../plugins-sdk/results/answers.ts';
import type { Services } from '../../plugins-sdk/services.ts';
import { errorText } from '../../plugins-sdk/testing/hook-outcome.ts';
import { servicesOf, testEndpoint } from '../../plugins-sdk/testing/services.ts';
import { exchangeOf } from '../../plugins-sdk/testing/test-exchange.ts';
import type { RecordedRequest } from './record.ts';
import { StandIns } from './stand-ins.ts';
import { type InnerCall, type Step, stepsOf, type Trace } from './steps.ts';

export type { Step };

export interface Trial {
  readonly choice: PluginChoice;
  readonly record: RecordedRequest;
  /** What turns the response into bytes where the endpoint has an `encoding`. */
  readonly encoder: Definition;
  /** Request headers that the service hides from plugins. */
  readonly credentials: readonly string[];
  readonly log: Log;
  /** Milliseconds that the plugin may take to start. */
  readonly patience: number;
}

type Endpoint = ReturnType<typeof testEndpoint>;

/**
 * Passes a recorded request through the service's own pipeline, in which the plugin is the only one that is not a stand-in. A
 * request that is refused ends in `onError`, any other in `onResponseSent`. An `onError` that had nothing to do is run with the
 * recorded error at last.
 *
 * @throws ConfigErrors
 * @throws Error what `setup` or `start` of the plugin throws.
 */
export async function runRecorded(trial: Trial): Promise<Step[]> {
  const { choice, record, encoder, credentials, log, patience } = trial;
  const endpoint = endpointOf(record);
  const services: Partial<Services> = { endpoints: [endpoint], credentials, log, budget: choice.budget };
  const { definition, config } = choice;
  const warn = (message: string) => log.warn(`plugin "${definition.name}": ${message}`);
  const plugin = checkBehaviour(definition.setup(servicesOf(definition, config, services), config), warn);
  const standIns = new StandIns(record, endpoint, plugin.hooks);
  const trace: Trace = { standIns, spent: new Map(), faults: new Map(), calls: new Map(), refusal: undefined };
  const { name, credentials: own } = choice.definition;
  const registrations: Registration[] = [
    { name, budget: choice.budget, credentials: own, plugin: watched(plugin, trace) },
  ];
  if (record.endpoint?.encoding !== undefined) {
    checkEncoding(encoder, endpoint);
    const behaviour = encoder.setup(servicesOf(encoder, undefined, services), undefined);
    registrations.push({ name: `encoder of ${name}`, budget: 'none', plugin: behaviour });
  }
  const others: Plugin = { hooks: standIns.hooks, observe: observerOf(trace, name) };
  registrations.push({ name: `stand-ins for ${name}`, budget: 'none', credentials, fallback: true, plugin: others });
  const plugins = createPluginSet(registrations, ({ stage, error }) => trace.faults.set(stage, errorText(error)));
  await withTimeout(patience, Promise.resolve(plugin.start?.()), notReadyAfter(patience));
  await pass(plugins, record, endpoint, trace);
  await plugin.stop?.(1000);
  return stepsOf(trace, record, [...Object.keys(plugin.hooks ?? {}), ...(plugin.vary ? ['vary'] : [])]);
}

function endpointOf({
  endpoint: { encoding, own = {}, shared: apiBlock = {}, ...names } = {},
}: RecordedRequest): Endpoint {
  const given = Object.fromEntries(Object.entries(names).filter(([, value]) => value !== undefined));
  return testEndpoint({ ...given, block: encoding === undefined ? own : { ...own, encoding }, apiBlock });
}

/** @throws ConfigErrors where the service would not start with it. */
function checkEncoding(encoder: Definition, { id: _, ...endpoint }: Endpoint): void {
  const draft: EndpointDraft = { ...endpoint, path: 'endpoint' };
  const findings = encoder.check?.({ config: {}, endpoints: [draft], interpolated: () => false, path: resolve }) ?? [];
  if (findings.some(({ level }) => level === 'error')) throw new ConfigErrors(findings);
}

/** The plugin, of whose inner functions the trace learns what came of them. */
function watched(plugin: Plugin, { calls }: Trace): Plugin {
  const { hooks = {}, vary } = plugin;
  const watch = (stage: string, owner: object, fn: unknown) => {
    if (typeof fn !== 'function' || Object.hasOwn(publicHooks, stage))
      return typeof fn === 'function' ? fn.bind(owner) : fn;
    return (...args: unknown[]) => {
      const call: InnerCall = { given: args[0] };
      calls.set(stage, call);
      return noted(call, () => Reflect.apply(fn, owner, args));
    };
  };
  const entries = Object.entries(hooks).map(([stage, entry]): [string, unknown] => {
    if (!Object.hasOwn(stages, stage) || typeof entry !== 'object' || entry === null)
      return [stage, watch(stage, hooks, entry)];
    return [
      stage,
      Object.fromEntries(Object.entries(entry).map(([variant, fn]) => [variant, watch(stage, entry, fn)])),
    ];
  });
  const wrapped = { ...plugin, hooks: Object.fromEntries(entries) };
  return vary === undefined
    ? wrapped
    : { ...wrapped, vary: watch('vary', plugin, vary) as NonNullable<Plugin['vary']> };
}

/** Does the work, and notes what came of it. */
function noted(call: InnerCall, work: () => unknown): unknown {
  const failed = (error: unknown) => {
    call.thrown = { error };
  };
  try {
    const value = work();
    if (value instanceof Promise) {
      value.then((late: unknown) => {
        call.value = late;
      }, failed);
    } else call.value = value;
    return value;
  } catch (error) {
    failed(error);
    throw error;
  }
}

/** How long each stage took, and in which of them the plugin failed. */
function observerOf(trace: Trace, name: string): Observer {
  return {
    stage: ({ stage, milliseconds }) => void trace.spent.set(stage, milliseconds),
    call: ({ plugin, stage, outcome }) => {
      if (plugin === name && outcome !== 'done' && !trace.faults.has(stage)) trace.faults.set(stage, '');
    },
  };
}

/** The request, and after it what observes its end. */
async function pass({ hooks }: PluginSet, record: RecordedRequest, endpoint: Endpoint, trace: Trace): Promise<void> {
  const { parameters, headers, ip, error: { status = 502, message = 'API call failed' } = {} } = record;
  const newExchange = (): Exchange => exchangeOf({ parameters: parameters ?? {}, headers, ip });
  const pipeline = new Pipeline(hooks, { now: Date.now, serialize: madeHere, failed: () => undefined });
  const tasks: (() => void)[] = [];
  const exchange = newExchange();
  try {
    await pipeline.admit(exchange);
    await pipeline.serve({ exchange, id: endpoint.id, later: (task) => tasks.push(task) });
  } catch (error) {
    trace.refusal = asRefusal(error);
  }
  await pipeline.headers(exchange);
  for (const task of tasks) task();
  await pipeline.drained();
  if (trace.refusal !== undefined) return;
  const another = newExchange();
  await hooks.ask('onError', new Refusal(status, message, { stage: 'callApi' }), endpoint.id, another);
}
