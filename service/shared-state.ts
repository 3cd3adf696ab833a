import { setImmediate as turn } from 'node:timers/promises';
import { LATE, withTimeout } from '../lib/time/with-timeout.ts';
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
  type Taken,
} from '../plugins-sdk/state/area.ts';
import { messageOf } from './text.ts';

/** Commands as metrics name them, whose names do not change with those of the methods. */
const COMMANDS = ['get', 'swap', 'take'] as const;
const OUTCOMES = ['done', 'failed', 'rejected'] as const;
type StateCommand = (typeof COMMANDS)[number];

/** How the commands of an engine are measured. */
type Measured = (command: StateCommand, outcome: (typeof OUTCOMES)[number], milliseconds: number) => void;

/** Asks for the instruments of an engine. @returns has it measure with them from now on. */
export function stateMeters(meters: Meters, state: StateClient): () => void {
  // An alert sees the first failure only beside a zero before it.
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
  meters.gauge({ ...available, across: 'min' }, () => (state.available() ? 1 : 0));
  const measure: Measured = (command, outcome, milliseconds) => {
    commands({ command, outcome }, 1);
    if (outcome !== 'rejected') seconds({ command }, milliseconds / 1000);
  };
  return () => state.measureWith(measure);
}

/** Milliseconds that a command may take. */
const COMMAND_TIMEOUT_MS = 250;
/** Failures in a row after which the engine is away: nobody waits for it any more. */
const FAILURES = 5;
/** Milliseconds between two looks at an engine. */
const PROBE_INTERVAL_MS = 1000;
/** Milliseconds between two looks at one that has failed just now. */
const DOUBT_INTERVAL_MS = 200;
/** Milliseconds that an engine has to let go of everything. */
const STOP_TIMEOUT_MS = 5000;
/** Milliseconds that an engine has to start: a file that it reads may be long. */
const START_TIMEOUT_MS = 60_000;

/** What is needed to use an engine with care. */
interface EngineInUse {
  readonly name: string;
  readonly type: Pick<StateEngineType, 'processes' | 'timeout'>;
  readonly engine: StateEngine;
  readonly log: Log;
  /** Hides secrets in the text of an error. */
  hide(text: string): string;
}

/**
 * An engine with a bound on the time of each command. One that fails again and again is left alone, but for a look now and
 * then, so that its failure costs requests nothing. The first look that succeeds brings it back.
 */
export class StateClient implements SharedState {
  readonly engine: string;
  readonly processes: StateEngineType['processes'];
  readonly #use: EngineInUse;
  readonly #probe: StateArea;
  readonly #areas = new Map<string, StateArea>();
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Whether a write is among the failures: then an engine that can only be read, or only delete, has not recovered. */
  #refusesWrites = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #measured: Measured = () => undefined;

  constructor(use: EngineInUse) {
    this.#use = use;
    this.engine = use.name;
    this.processes = use.type.processes;
    this.#probe = use.engine.area('probe');
  }

  /** @throws Error that says what to do. */
  async start(): Promise<void> {
    try {
      await withTimeout(START_TIMEOUT_MS, this.#use.engine.start(), () => {
        throw new Error(`settings.state: "${this.engine}" is not ready after ${START_TIMEOUT_MS} ms`);
      });
    } catch (error) {
      throw new Error(this.#use.hide(messageOf(error)));
    }
    // One that answers may still refuse what the service will ask for, such as keys with this prefix, or any write.
    // One of a single process that is full must start, or nobody could be answered until there is room.
    await this.#write(this.processes === 'many' ? '' : undefined).catch((error: unknown) => {
      throw new Error(`settings.state: ${this.#use.hide(messageOf(error))}`);
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

  /** Measures from now on with these instruments. */
  measureWith(measured: Measured): void {
    this.#measured = measured;
  }

  /** Waits for no engine that does not end, such as one whose disk hangs: the service must. */
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
      // A bucket that is not full is one that was stored.
      takeTokens: (key, limit, ...rest) => {
        const hasStored = ({ left }: Taken) => left < limit.max;
        return this.#run('take', () => area.takeTokens(key, limit, ...rest), hasStored);
      },
    };
  }

  async #run<T>(command: StateCommand, ask: () => Promise<T>, wrote?: (answer: T) => boolean): Promise<T> {
    if (!this.available()) {
      this.#measured(command, 'rejected', 0);
      throw new StateUnavailable(`the engine of settings.state is away (${this.engine})`);
    }
    return this.#ask(command, ask, wrote);
  }

  /** @param wrote whether an answer means that the engine has stored something: it may have had to do no more than look or delete. */
  async #ask<T>(command: StateCommand, ask: () => Promise<T>, wrote = (_answer: T) => false): Promise<T> {
    const began = performance.now();
    try {
      const answer = await this.#withTimeout(ask());
      if (!this.#refusesWrites || wrote(answer)) this.#succeeded();
      this.#measured(command, 'done', performance.now() - began);
      return answer;
    } catch (error) {
      this.#measured(command, 'failed', performance.now() - began);
      // One key that somebody else wrote says nothing of the engine.
      if (error instanceof StateUnreadable) throw error;
      this.#failedAt = performance.now();
      // Nor does a part of it that is away, which rejects at once.
      if (error instanceof StatePartUnavailable) throw error;
      const reason = this.#use.hide(messageOf(error));
      this.#refusesWrites ||= command !== 'get';
      this.#failed(reason);
      throw new StateUnavailable(reason);
    }
  }

  async #withTimeout<T>(answer: Promise<T>): Promise<T> {
    const { timeout = COMMAND_TIMEOUT_MS } = this.#use.type;
    const first = await withTimeout(timeout, answer);
    if (first !== LATE) return first;
    // On a busy machine the timer is heard before an answer that has come long ago.
    const second = await Promise.race([answer, turn().then(() => turn(LATE))]);
    if (second === LATE) throw new StateUnavailable(`no answer within ${timeout} ms`);
    return second;
  }

  #succeeded(): void {
    const wasAway = !this.available();
    this.#failures = 0;
    this.#refusesWrites = false;
    if (wasAway) this.#use.log.info('the engine of settings.state is back', { engine: this.engine });
  }

  #failed(error: string): void {
    this.#failures += 1;
    if (this.#failures === FAILURES)
      this.#use.log.error('the engine of settings.state is away', { engine: this.engine, error });
    if (this.#failures === 1) this.#look(DOUBT_INTERVAL_MS);
  }

  /**
   * Asks, in a while and from then on, for a write. An engine that can only be read, or that is full and can still delete, is
   * away, too. One of a single process that is well is asked whether it could write: there nothing fails but its own writes.
   */
  #look(delay: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const next = this.processes === 'many' || this.#failures > 0 ? '' : undefined;
      await this.#ask('swap', () => this.#write(next), hasWritten(next)).catch(() => undefined);
      this.#look(this.#failures > 0 && this.available() ? DOUBT_INTERVAL_MS : PROBE_INTERVAL_MS);
    }, delay).unref();
  }

  #write(next: string | undefined): Promise<unknown> {
    // One of several keys: the part that keeps one may be away.
    return this.#probe.compareAndSet(`probe ${Math.floor(Math.random() * 16)}`, undefined, next, { ttl: 1 });
  }
}

/** @param next what a swap is to put there. @returns whether its answer means that this was stored. */
function hasWritten(next: string | undefined): (standing: unknown) => boolean {
  return (standing) => next !== undefined && standing === undefined;
}
