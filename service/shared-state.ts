import { setImmediate as turn } from 'node:timers/promises';
import { errorForLog } from '../kernel/refusal.ts';
import { LATE, withTimeout } from '../lib/time.ts';
import type { Log } from '../plugins-sdk/log.ts';
import type { Meters } from '../plugins-sdk/meters.ts';
import {
  type SharedState,
  type StateArea,
  type StateEngine,
  type StateEngineType,
  StatePartUnavailable,
  StateUnavailable,
  StateUnreadable,
} from '../plugins-sdk/state/area.ts';

/** The commands under the names that metrics use. They stay when a method is renamed. */
const COMMANDS = ['get', 'swap', 'take'] as const;
const OUTCOMES = ['done', 'failed', 'rejected'] as const;
type StateCommand = (typeof COMMANDS)[number];

/** Milliseconds that a command may take. */
const COMMAND_TIMEOUT_MS = 250;
/** Failures in a row after which the engine counts as away, and commands are rejected at once. */
const FAILURES = 5;
/** How many reasons are logged of an engine that is away. */
const MOST_REASONS = 5;
/** Milliseconds between two probes of an engine. */
const PROBE_INTERVAL_MS = 1000;
/** Milliseconds between two probes of an engine that has failed but is not yet away. */
const DOUBT_INTERVAL_MS = 200;
/** The value that a probe writes. */
const PROBE = '';
/** Milliseconds that an engine has to close. */
const STOP_TIMEOUT_MS = 5000;
/** Milliseconds that an engine has to start; it may have to read a long file. */
const START_TIMEOUT_MS = 60_000;

/** An engine with the parts that a client of it needs. */
interface EngineInUse {
  readonly name: string;
  readonly type: Pick<StateEngineType, 'timeout'>;
  readonly engine: StateEngine;
  readonly log: Log;
  /** Hides secrets in the text of an error. */
  hide(text: string): string;
}

/**
 * A client of an engine that bounds the time of each command. After several failures in a row it rejects commands at
 * once, so that a broken engine does not slow requests. It then probes the engine; the first success brings it back.
 */
export class StateClient implements SharedState {
  readonly engine: string;
  readonly #use: EngineInUse;
  readonly #areas = new Map<string, StateArea>();
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Whether a write has failed. Then only a write proves recovery: a full engine may still read and delete. */
  #refusesWrites = false;
  /** The logged reasons for which the engine is away. */
  #told: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #measured: ((command: StateCommand, outcome: (typeof OUTCOMES)[number], milliseconds: number) => void) | undefined;

  constructor(use: EngineInUse) {
    this.#use = use;
    this.engine = use.name;
  }

  /** Starts the engine, and checks that it can write. @throws Error that says what to do. */
  async start(): Promise<void> {
    try {
      const started = await withTimeout(START_TIMEOUT_MS, this.#use.engine.start());
      if (started === LATE)
        throw new Error(`settings.state: "${this.engine}" is not ready after ${START_TIMEOUT_MS} ms`);
    } catch (error) {
      throw new Error(this.#use.hide(errorForLog(error, 'message')));
    }
    // An engine that answers may still refuse some commands, such as keys with this prefix, or any write.
    await this.#write().catch((error: unknown) => {
      throw new Error(`settings.state: ${this.#use.hide(errorForLog(error, 'message'))}`);
    });
    this.#look(PROBE_INTERVAL_MS);
  }

  available(): boolean {
    return this.#failures < FAILURES;
  }

  sinceFailure(): number {
    return performance.now() - this.#failedAt;
  }

  doubts(): readonly string[] {
    return this.#use.engine.doubts();
  }

  area(name: string): StateArea {
    const known = this.#areas.get(name) ?? this.#bounded(this.#use.engine.area(name));
    this.#areas.set(name, known);
    return known;
  }

  /** Makes the engine's instruments for a config. The first ones measure: those of a later config lead to the same series. */
  measure(meters: Meters): void {
    // Each series begins at zero, or an alert on its increase would miss the first failure.
    const initial = COMMANDS.flatMap((command) => OUTCOMES.map((outcome) => ({ command, outcome })));
    const commands = meters.counter({
      name: 'state_commands_total',
      help: 'Commands to the engine of settings.state: done, failed, or rejected while it was away',
      labels: ['command', 'outcome'],
      initial,
    });
    const seconds = meters.histogram({
      name: 'state_command_duration_seconds',
      help: 'Duration of commands to the engine of settings.state',
      labels: ['command'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
    });
    const available = { name: 'state_available', help: 'Whether the engine of settings.state answers: 1 or 0' };
    meters.gauge({ ...available, across: 'min' }, () => (this.available() ? 1 : 0));
    this.#measured ??= (command, outcome, milliseconds) => {
      commands({ command, outcome }, 1);
      if (outcome !== 'rejected') seconds({ command }, milliseconds / 1000);
    };
  }

  /** Closes the engine within a bound: the service must end even if the engine hangs, such as on its disk. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    if ((await withTimeout(STOP_TIMEOUT_MS, this.#use.engine.close())) === LATE)
      this.#use.log.error('the engine of settings.state did not stop in time', { engine: this.engine });
  }

  #bounded(area: StateArea): StateArea {
    return {
      get: (key) => this.#run('get', () => area.get(key)),
      compareAndSet: (...args) => this.#run('swap', () => area.compareAndSet(...args), hasWritten(args[2])),
      // A bucket that is not full has been stored.
      takeTokens: (key, limit, ...rest) => {
        const hasStored = ({ left }: { readonly left: number }) => left < limit.max;
        return this.#run('take', () => area.takeTokens(key, limit, ...rest), hasStored);
      },
    };
  }

  async #run<T>(command: StateCommand, ask: () => Promise<T>, wrote?: (answer: T) => boolean): Promise<T> {
    if (!this.available()) {
      this.#measured?.(command, 'rejected', 0);
      throw new StateUnavailable(`the engine of settings.state is away (${this.engine})`);
    }
    return this.#ask(command, ask, wrote);
  }

  /** Asks the engine, and counts its failures. @param wrote whether an answer proves a write, not just a read or a delete. */
  async #ask<T>(command: StateCommand, ask: () => Promise<T>, wrote = (_answer: T) => false): Promise<T> {
    const began = performance.now();
    try {
      const answer = await this.#withTimeout(ask());
      if (!this.#refusesWrites || wrote(answer)) this.#succeeded();
      this.#measured?.(command, 'done', performance.now() - began);
      return answer;
    } catch (error) {
      this.#measured?.(command, 'failed', performance.now() - began);
      // The engine is sound: another program wrote this one key.
      if (error instanceof StateUnreadable) throw error;
      this.#failedAt = performance.now();
      // The rest of the engine is sound, and the part that is away rejects at once.
      if (error instanceof StatePartUnavailable) throw error;
      this.#refusesWrites ||= command !== 'get';
      throw this.#failed(this.#use.hide(errorForLog(error, 'message')));
    }
  }

  async #withTimeout<T>(answer: Promise<T>): Promise<T> {
    const { timeout = COMMAND_TIMEOUT_MS } = this.#use.type;
    const first = await withTimeout(timeout, answer);
    if (first !== LATE) return first;
    // On a busy machine the timer may fire before an answer that arrived long ago is handled.
    const second = await Promise.race([answer, turn().then(() => turn(LATE))]);
    if (second === LATE) throw new StateUnavailable(`no answer within ${timeout} ms`);
    return second;
  }

  #succeeded(): void {
    if (!this.available()) this.#use.log.info('the engine of settings.state is back', { engine: this.engine });
    this.#failures = 0;
    this.#refusesWrites = false;
    this.#told = [];
  }

  /** Logs each reason once. The first one may only be that a connection broke, and a later one says what to set. */
  #failed(error: string): StateUnavailable {
    this.#failures += 1;
    if (!this.available() && this.#told.length < MOST_REASONS && !this.#told.includes(error)) {
      this.#told = [...this.#told, error];
      this.#use.log.error('the engine of settings.state is away', { engine: this.engine, error });
    }
    if (this.#failures === 1) this.#look(DOUBT_INTERVAL_MS);
    return new StateUnavailable(error);
  }

  /**
   * Probes the engine after a delay, and again and again from then on. The probe is a write: an engine that can only read
   * or delete counts as away.
   */
  #look(delay: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      await this.#ask('swap', () => this.#write(), hasWritten(PROBE)).catch(() => undefined);
      this.#look(this.#failures > 0 && this.available() ? DOUBT_INTERVAL_MS : PROBE_INTERVAL_MS);
    }, delay).unref();
  }

  #write(): Promise<unknown> {
    // A random key of several, because the part of the engine that keeps one key may be away.
    const key = `probe ${Math.floor(Math.random() * 16)}`;
    return this.#use.engine.area('probe').compareAndSet(key, undefined, PROBE, { ttl: 1 });
  }
}

/** Returns whether the answer to a swap means that `next` was stored. @param next the new value of the swap. */
function hasWritten(next: string | undefined): (standing: unknown) => boolean {
  return (standing) => next !== undefined && standing === undefined;
}
