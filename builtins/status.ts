import { LRUCache } from 'lru-cache';
import { optionalKey } from '../plugins-sdk/config.ts';
import { clientName, definePlugin, type Exchange, type Refusal, Type } from '../plugins-sdk/index.ts';
import { type FailureClass, failureClassOf, type RequestOutcome } from '../plugins-sdk/observe.ts';
import { StateKey } from '../plugins-sdk/state.ts';

/** A config key of the plugin `metrics`, only read here: without its port there is no `GET /status`. */
const metricsKey = optionalKey('settings', 'metrics', Type.Unknown());

/** Most clients that are counted by name, and most that are shown. */
const MOST_CLIENTS = 1000;
const SHOWN_CLIENTS = 10;
/** Most kinds of errors that are remembered: the latest. */
const MOST_ERRORS = 20;

/** Failures of one kind: the same class, status and stage at the same endpoint. */
type ErrorKind = {
  readonly reason: FailureClass;
  readonly endpoint: string | null;
  readonly stage: string | null;
  readonly status: number;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  /** The request ID of the last failure: the log has the rest. */
  readonly requestId: string;
};

/** Requests by client, and the latest failures, since the process started. */
class Recent {
  readonly #clients = new Map<string, number>();
  readonly #errors = new LRUCache<string, ErrorKind>({ max: MOST_ERRORS });
  #unnamed = 0;
  #others = 0;

  count(name: string | undefined): void {
    if (name === undefined) this.#unnamed += 1;
    else if (this.#clients.size < MOST_CLIENTS || this.#clients.has(name))
      this.#clients.set(name, (this.#clients.get(name) ?? 0) + 1);
    else this.#others += 1;
  }

  fail({ requestId, resolved }: Exchange, refusal: Refusal, reason: FailureClass, now: number): void {
    const { status } = refusal;
    const endpoint = resolved === undefined ? null : `${resolved.api}/${resolved.name}`;
    const stage = refusal.stage ?? null;
    const key = JSON.stringify([reason, endpoint, stage, status]);
    const lastAt = new Date(now).toISOString();
    const { count = 0, firstAt = lastAt } = this.#errors.get(key) ?? {};
    this.#errors.set(key, { reason, endpoint, stage, status, count: count + 1, firstAt, lastAt, requestId });
  }

  clients() {
    const sorted = [...this.#clients].toSorted(([, a], [, b]) => b - a);
    const rest = sorted.slice(SHOWN_CLIENTS).reduce((sum, [, requests]) => sum + requests, this.#others);
    const top = sorted.slice(0, SHOWN_CLIENTS).map(([name, requests]) => ({ name, requests }));
    return { top, others: rest, unnamed: this.#unnamed };
  }

  /** Returns the failures, the latest kind first. */
  errors() {
    return [...this.#errors.values()];
  }
}

const kept = new StateKey<Recent>('status');

/** Shows the clients with most requests and the latest failures: `GET /status` of the metrics port, and the command `status`. */
export const status = definePlugin({
  name: 'status',
  setup({ config, states, stateEngine, status: shown, now }) {
    if (metricsKey.in(config) === undefined) return {};
    const recent = states.keep(kept, '', () => new Recent());
    shown.show('engines', () => {
      if (stateEngine === undefined) return [];
      return [{ name: stateEngine.engine, state: stateEngine.available() ? 'up' : 'away' }];
    });
    // Other plugins add to these lists, which are shown even if they are empty.
    for (const part of ['signers', 'breakers']) shown.show(part, () => []);
    shown.show('clients', () => recent.clients());
    shown.show('errors', () => recent.errors());
    const concluded = (outcome: RequestOutcome, exchange: Exchange) => {
      recent.count(clientName.get(exchange));
      if (outcome.kind !== 'refused') return;
      const reason = failureClassOf(outcome.refusal);
      if (reason !== undefined) recent.fail(exchange, outcome.refusal, reason, now());
    };
    return { hooks: { concluded } };
  },
});
