import type { LoadedConfig } from '../config/index.ts';
import { HttpApp } from '../http/app.ts';
import type { Runtime } from '../kernel/pipeline.ts';
import { errorForLog } from '../kernel/refusal.ts';
import type { Registration } from '../kernel/registry.ts';
import { LATE, withTimeout } from '../lib/time.ts';
import type { ConnectionLimits } from '../plugins-sdk/connection-limits.ts';
import { failureClassOf } from '../plugins-sdk/failure-class.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { madeHere } from '../plugins-sdk/results/answers.ts';
import { httpResponseOf } from '../plugins-sdk/results/http-response.ts';
import type { Services, Status } from '../plugins-sdk/services.ts';
import { Debts } from '../plugins-sdk/state/debts.ts';
import { StateStore } from '../plugins-sdk/state/store.ts';
import { randomId } from '../plugins-sdk/state.ts';
import { ask } from './ask.ts';
import { type AssembledPlugins, assemble } from './assemble.ts';
import { inBackground } from './background.ts';
import { connectionLimitsOf } from './listener.ts';
import type { ServiceLog } from './log.ts';
import { type MeterRegistry, type MeterSet, UNBOUNDED } from './meter-registry.ts';
import { startPlugin } from './plugin-set.ts';
import type { StateClient } from './shared-state.ts';
import type { Signers } from './signers.ts';
import { type LastReload, StatusParts, tellOfService } from './status.ts';
import type { WorkerLink } from './workers/link.ts';

/** Milliseconds that plugins have to stop. */
const STOP_TIMEOUT_MS = 5000;

/** The parts that all generations of a service share. */
export interface Shared extends Pick<Services, 'now' | 'debts' | 'phase'> {
  readonly log: ServiceLog;
  readonly signers: Signers;
  readonly meters: MeterRegistry;
  readonly stateEngine?: StateClient | undefined;
  readonly workers?: WorkerLink | undefined;
  readonly lastReload: () => LastReload;
  /** The generations that have been in force and still have requests, that in force included. */
  readonly generations: Set<Generation>;
  /** The status of the generation in force; undefined before the first one is. */
  status(): ReturnType<Status['read']> | undefined;
}

/** One config at work: its plugins and the requests that they serve. A reload makes another one. */
export class Generation {
  readonly loaded: LoadedConfig;
  readonly connectionLimits: ConnectionLimits;
  readonly status = new StatusParts();
  readonly plugins: AssembledPlugins;
  readonly app: HttpApp;
  /** The plugins' work that goes on after its request. */
  readonly background = new Debts();
  readonly #states: StateStore;
  readonly #meters: MeterSet;
  readonly #shared: Shared;
  /** The plugins whose start has begun, which a stop has to stop. */
  readonly #started: Registration[] = [];
  #stopped: Promise<void> | undefined;

  /** @param before the generation whose state this one takes over. @throws RegistrationError */
  constructor(loaded: LoadedConfig, shared: Shared, before?: Generation) {
    const { signers, generations, lastReload, status, ...parts } = shared;
    const { log } = parts;
    this.loaded = loaded;
    this.#shared = shared;
    this.#states = new StateStore(before === undefined ? undefined : before.#states);
    this.#meters = parts.meters.draft();
    parts.stateEngine?.measure(this.#meters.of('settings.state', UNBOUNDED));
    const definitions = loaded.plugins.map(({ definition }) => definition);
    this.connectionLimits = connectionLimitsOf(loaded.config, definitions);
    const runtime = { now: parts.now, makeAnswer: madeHere, failed: failureLog(log, loaded.hide) };
    try {
      const surroundings = { ...parts, ...signers.addressesIn(loaded) };
      tellOfService(this.status, this.#meters, { ...surroundings, config: loaded.file, lastReload });
      this.plugins = assemble(loaded, {
        ...surroundings,
        states: this.#states,
        meters: this.#meters,
        status: { show: (...part) => this.status.show(...part), read: () => status() ?? this.status.read() },
        background: inBackground(this.background, (plugin, error) =>
          log.error(`plugin "${plugin}" failed in the background`, { error: loaded.hide(errorForLog(error)) }),
        ),
        // Counting handles a rejection. The plugin gets another promise, so that one which it does not await is reported.
        ask: async (plugin, id, parameters, options) => {
          const asked = { ...options, plugin, id, parameters };
          return this.plugins.running.track(() => ask(this.plugins, runtime, asked));
        },
        admit: async (exchange) => void (await this.plugins.hooks.admit.ask([exchange])),
        prices: {
          providers: () => new Map(this.plugins.taps.price.map(({ variant = '', plugin }) => [variant, plugin])),
          priceOf: (name, ...asked) => this.plugins.hooks.price.ask(asked, name),
        },
      });
      this.app = new HttpApp({
        plugins: this.plugins,
        runtime,
        newId: randomId,
        check: httpResponseOf,
      });
    } catch (error) {
      void this.stop(0);
      throw error;
    }
  }

  /** Starts the plugins. @throws RegistrationError when one cannot start; those before it have to be stopped. */
  async start(): Promise<void> {
    for (const each of this.plugins.plugins) {
      this.#started.push(each);
      await startPlugin(each, this.loaded.hide);
    }
  }

  /** Puts the started generation into force. After this it takes over no more state from the one before. */
  commit(): void {
    this.#shared.generations.add(this);
    this.#states.settle();
    this.#meters.commit();
  }

  /** Resolves when no request is under way; detached requests and the hooks that observe their ends count, too. */
  served(): Promise<void> {
    return this.plugins.running.wait();
  }

  /** Resolves when no request and no background work is left; background work may make requests of its own. */
  async drained(): Promise<void> {
    do {
      await this.background.paid();
      await this.served();
    } while (this.background.size > 0);
  }

  /**
   * Stops the plugins that were started, then closes the state and the signers that no other generation uses. All of this once.
   * @param patience milliseconds for the plugins; raised to 1000, and cut at 5000.
   */
  stop(patience: number): Promise<void> {
    this.#stopped ??= this.#stop(Math.min(Math.max(patience, 1000), STOP_TIMEOUT_MS));
    return this.#stopped;
  }

  async #stop(patience: number): Promise<void> {
    const stops = this.#started.map(async ({ name, plugin }) => {
      try {
        const stopped = await withTimeout(patience, plugin.stop?.(patience));
        if (stopped === LATE) this.#shared.log.error(`plugin "${name}" did not stop in time`);
      } catch (error) {
        this.#shared.log.error(`plugin "${name}" failed to stop`, { error: errorForLog(error) });
      }
    });
    await Promise.all(stops);
    this.#shared.generations.delete(this);
    try {
      const others = [...this.#shared.generations].map((other) => other.#states);
      await Promise.all([this.#states.closeAllBut(others), this.#shared.signers.release(this.loaded.config)]);
    } catch (error) {
      this.#shared.log.error('state of a plugin cannot be closed', { error: errorForLog(error) });
    }
  }
}

function failureLog(log: Log, hide: LoadedConfig['hide']): Runtime['failed'] {
  return ({ requestId, resolved, detached }, refusal) => {
    const { stage, status, message, fault } = refusal;
    const reason = failureClassOf(refusal);
    const fields = {
      requestId,
      endpointId: resolved?.id,
      endpoint: resolved && `${resolved.api}/${resolved.name}`,
      stage,
      status,
      reason,
      detail: refusal.reason === undefined ? undefined : hide(refusal.reason),
    };
    if (fault) log.warn(message, fields);
    // A plugin's rejection is an operator's own rule at work. A detached request's line was written before it failed.
    else if (stage === 'onHttpRequest' || (detached && reason !== undefined)) log.info(message, fields);
    else log.debug(message, fields);
  };
}
