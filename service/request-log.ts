import { control } from '../kernel/exchange.ts';
import { clipped } from '../lib/text/clipped.ts';
import { millisecondsSchema } from '../plugins-sdk/config.ts';
import { optionalKey } from '../plugins-sdk/config-key.ts';
import { unknownEndpointId } from '../plugins-sdk/context-keys.ts';
import { failureClassOf } from '../plugins-sdk/failure-class.ts';
import { ContextKey, clientIp, clientName, definePlugin, type Exchange, type Log } from '../plugins-sdk/index.ts';
import type { CallEvent, StageEvent } from '../plugins-sdk/kernel.ts';
import { signedFacts } from '../plugins-sdk/results/answers.ts';
import { round, type StageTime, spentIn } from './timeline.ts';

/** The part of its budget from which on a plugin is worth a line. */
const SLOW = 0.5;

const slowKey = optionalKey(
  'settings',
  'log.slow',
  millisecondsSchema('Slower requests are logged as a warning; default none'),
);

/** How requests are logged. */
export interface RequestLogSettings {
  /** Whether a line has all that is known of a request as fields, for programs; else it is short, for people. */
  readonly isJson: boolean;
  /** Whether to show what each stage took, in a line of its own and in the request's timeline; read at each set-up. */
  readonly isTraced: boolean;
}

/** Characters of why a request was refused: a client may have chosen some. */
const MAX_DETAIL = 300;

/** Whoever was not let in asks why, or is asked: these lines say so on their own. */
const TURNED_AWAY: ReadonlySet<number> = new Set([401, 429]);

/** All that is known of a request; what does not apply is undefined. */
function factsOf(exchange: Exchange, status: number, hide: (text: string) => string) {
  const { requestId, method, route, resolved, outcome } = exchange;
  const refusal = outcome?.kind === 'refused' ? outcome.refusal : undefined;
  const signed = outcome?.kind === 'signed' ? signedFacts(outcome.response) : undefined;
  return {
    requestId,
    endpoint: resolved && `${resolved.api}/${resolved.name}`,
    endpointId: resolved?.id ?? unknownEndpointId.get(exchange),
    route,
    method,
    mode: resolved?.mode,
    status,
    ms: Math.round(exchange.elapsed() * 10) / 10,
    client: clientName.get(exchange),
    address: clientIp(exchange),
    reason: refusal && failureClassOf(refusal),
    detail: refusal && clipped(hide(refusal.reason ?? refusal.message), MAX_DETAIL),
    signed: signed && { digest: signed.digest, timestamp: signed.timestamp },
  };
}

type Facts = ReturnType<typeof factsOf>;

function writeText(log: Log, { requestId, client, reason, detail, address, endpointId, ...facts }: Facts): void {
  const isRequesters = reason === 'requester';
  const isTurnedAway = detail !== undefined && TURNED_AWAY.has(facts.status);
  log.info(`${facts.endpoint ?? `${facts.method} ${facts.route}`} ${facts.status} ${facts.ms}ms`, {
    requestId,
    ...(client !== undefined && { client }),
    ...(isRequesters && { reason }),
    ...((isRequesters || isTurnedAway) && { detail }),
    ...(isTurnedAway && { address }),
    ...(endpointId !== undefined && { endpointId }),
  });
}

function writeJson(log: Log, facts: Facts, exchange: Exchange): void {
  ContextKey.addLogged(exchange, facts);
  log.info('request', facts);
}

type Used = readonly Pick<StageTime, 'stage' | 'milliseconds'>[];

/** Stages with durations. */
function textOf(all: Used): string {
  return all.map(({ stage, milliseconds }) => `${stage} ${round(milliseconds)}`).join(', ');
}

/** @returns what tells of a plugin that takes long or fails: which hook it was, and what each of its hooks has used of the budget. */
function pluginCalls(log: Log): (event: CallEvent) => void {
  const usedOf = new WeakMap<object, Used>();
  return ({ exchange, plugin, stage, milliseconds, budget, outcome }) => {
    if (budget === undefined) return;
    const origin = control.originOf(exchange);
    // Shared work goes on with what the request that began it had left.
    const begun = (origin && control.charge(origin, plugin)) ?? budget;
    const before = usedOf.get(budget) ?? usedOf.get(begun) ?? [];
    const all = milliseconds > 0 ? [...before, { stage, milliseconds }] : before;
    usedOf.set(budget, all);
    const used = all.reduce((sum, each) => sum + each.milliseconds, 0);
    // The hook with which it became slow is the one to name, not those that came after.
    if (outcome === 'done' && (used < budget.total * SLOW || used - milliseconds >= budget.total * SLOW)) return;
    const what = outcome === 'done' ? 'is slow' : outcome === 'failed' ? 'failed' : 'is out of budget';
    log.warn(`plugin "${plugin}" ${what} in ${stage}`, {
      requestId: exchange.requestId,
      budget: `${round(used)} of ${budget.total} ms`,
      used: textOf(all),
    });
  };
}

/** One line per request; one per plugin that failed or used more than half of its budget, and one per request that was slow. */
export function requestLog(settings: RequestLogSettings) {
  return definePlugin({
    name: 'request-log',
    required: true,
    keys: [slowKey],
    changesAnswers: false,
    setup({ log, hide, config }) {
      const { isJson, isTraced } = settings;
      const slow = slowKey.in(config);
      const timelines = new ContextKey<StageTime[]>('timeline');
      const note = ({ exchange, stage, milliseconds }: StageEvent) => {
        // One for the request and its forks: work that others may wait for, too, stands where it was begun.
        const timeline = timelines.get(exchange) ?? [];
        if (timeline.push({ stage, milliseconds, end: performance.now() }) === 1) timelines.set(exchange, timeline);
        if (isTraced) log.debug(`stage ${stage}`, { requestId: exchange.requestId, milliseconds: round(milliseconds) });
      };
      const tell = (exchange: Exchange) => {
        const timeline = timelines.get(exchange) ?? [];
        const ms = exchange.elapsed();
        const { requestId, resolved } = exchange;
        if (isTraced && timeline.length > 0) log.debug('timeline', { requestId, ms: textOf(timeline) });
        if (slow === undefined || ms <= slow) return;
        const endpoint = resolved && `${resolved.api}/${resolved.name}`;
        log.warn('slow request', { requestId, endpoint, ms: round(ms), spent: spentIn(timeline, ms) });
      };
      const isTimed = isTraced || slow !== undefined;
      return {
        observe: {
          ...(isTimed && { stage: note }),
          call: pluginCalls(log),
          response: (exchange, status) => {
            (isJson ? writeJson : writeText)(log, factsOf(exchange, status, hide), exchange);
            if (isTimed) tell(exchange);
          },
        },
      };
    },
  });
}
