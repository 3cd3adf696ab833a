import { control } from '../kernel/exchange.ts';
import type { CallEvent, StageEvent } from '../kernel/hooks.ts';
import { clipped } from '../lib/text.ts';
import { millisecondsSchema } from '../plugins-sdk/config.ts';
import { optionalKey } from '../plugins-sdk/config-key.ts';
import { unknownEndpointId } from '../plugins-sdk/context-key.ts';
import { failureClassOf } from '../plugins-sdk/failure-class.ts';
import { ContextKey, clientIp, clientName, definePlugin, type Exchange, type Log } from '../plugins-sdk/index.ts';
import { signedFacts } from '../plugins-sdk/results/answers.ts';

/** The share of its budget from which on a plugin's time is logged. */
const SLOW = 0.5;

const slowKey = optionalKey(
  'settings',
  'log.slow',
  millisecondsSchema('Slower requests are logged as a warning; default none'),
);

/** How the request log writes. */
export interface RequestLogSettings {
  /** Whether each line has all facts of its request as fields, for programs; otherwise it is short, for people. */
  readonly isJson: boolean;
  /** Whether to log each stage's duration, in a line of its own and in the request's timeline. */
  readonly isTraced: boolean;
}

/** The most characters of a refusal's reason, of which a client may have chosen some. */
const MAX_DETAIL = 300;

/** Statuses whose short lines also show `detail` and `address`: operators look for these when a client is turned away. */
const TURNED_AWAY: ReadonlySet<number> = new Set([401, 429]);

/** Returns all facts of a request; those that do not apply are undefined. */
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

/** A stage of a request, and its duration with the stages inside it. */
interface StageTime {
  readonly stage: string;
  readonly milliseconds: number;
}

/** Rounds milliseconds to two decimals. */
function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}

/** Returns stages and durations as text, such as `admit 0.1, resolve 0.2`. */
function textOf(all: readonly StageTime[]): string {
  return all.map(({ stage, milliseconds }) => `${stage} ${round(milliseconds)}`).join(', ');
}

/** Returns an observer that warns of slow and failing plugins: with the hook, and the time that each hook has used. */
function pluginCalls(log: Log): (event: CallEvent) => void {
  const usedOf = new WeakMap<object, readonly StageTime[]>();
  return ({ exchange, plugin, stage, milliseconds, charge, outcome }) => {
    if (charge === undefined) return;
    // Shared work uses the budget of the request that began it.
    const origin = control.originOf(exchange);
    const budget = (origin && control.chargeOf(origin, plugin)) ?? charge;
    const before = usedOf.get(budget) ?? [];
    const all = milliseconds > 0 ? [...before, { stage, milliseconds }] : before;
    usedOf.set(budget, all);
    const used = all.reduce((sum, each) => sum + each.milliseconds, 0);
    // Only the hook that crossed the line is named, not those after it.
    if (outcome === 'done' && (used < charge.total * SLOW || used - milliseconds >= charge.total * SLOW)) return;
    const what = outcome === 'done' ? 'is slow' : outcome === 'failed' ? 'failed' : 'is out of budget';
    log.warn(`plugin "${plugin}" ${what} in ${stage}`, {
      requestId: exchange.requestId,
      budget: `${round(used)} of ${charge.total} ms`,
      used: textOf(all),
    });
  };
}

/** Logs one line per request, one per plugin that failed or used half of its budget, and one per slow request. */
export function requestLog({ isJson, isTraced }: RequestLogSettings) {
  return definePlugin({
    name: 'request-log',
    required: true,
    keys: [slowKey],
    changesAnswers: false,
    setup({ log, hide, config }) {
      const slow = slowKey.in(config);
      const timelines = new ContextKey<StageTime[]>('timeline');
      const note = ({ exchange, stage, milliseconds }: StageEvent) => {
        // A request shares one timeline with its forks, so shared work is listed where it was begun.
        const timeline = timelines.get(exchange) ?? [];
        if (timeline.push({ stage, milliseconds }) === 1) timelines.set(exchange, timeline);
        if (isTraced) log.debug(`stage ${stage}`, { requestId: exchange.requestId, milliseconds: round(milliseconds) });
      };
      const tell = (exchange: Exchange) => {
        const timeline = timelines.get(exchange) ?? [];
        const ms = exchange.elapsed();
        const { requestId, resolved } = exchange;
        if (isTraced && timeline.length > 0) log.debug('timeline', { requestId, ms: textOf(timeline) });
        if (slow === undefined || ms <= slow) return;
        const endpoint = resolved && `${resolved.api}/${resolved.name}`;
        const spent = textOf(timeline.filter(({ milliseconds }) => milliseconds >= 1));
        log.warn('slow request', { requestId, endpoint, ms: round(ms), spent });
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
