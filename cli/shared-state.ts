import { setImmediate as turn } from 'node:timers/promises';
import type { LoadedConfig } from '../config/index.ts';
import type { Definition, Log } from '../plugins-sdk/define.ts';
import type { Endpoint } from '../plugins-sdk/kernel.ts';
import { stateKey } from '../plugins-sdk/keys.ts';
import type { Measure, Meters } from '../plugins-sdk/meters.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import {
  type EngineServices,
  type SharedState,
  type StateArea,
  type StateEngine,
  type StateEngineType,
  StateUnavailable,
} from '../plugins-sdk/state-area.ts';
import { within } from '../plugins-sdk/within.ts';
import { endsWithin } from './ends-within.ts';
import { messageOf } from './text.ts';

/** Milliseconds that a command may take. */
const TIMEOUT = 250;
/** Failures in a row after which the engine is away: nobody waits for it any more. */
const FAILURES = 5;
/** Milliseconds between two looks at an engine. */
const LOOK = 1000;
/** Milliseconds between two looks at one that has failed just now. */
const DOUBT = 200;
/** Milliseconds that an engine has to let go of everything. */
const STOP_TIME = 5000;
/** Milliseconds that an engine has to start: a file may be long. */
const START_TIME = 60_000;

/** How the commands of an engine are measured. */
type Measured = (command: keyof StateArea, outcome: 'done' | 'failed' | 'rejected', milliseconds: number) => void;

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
 * then, so that its failure costs requests nothing; the first look that succeeds brings it back.
 */
export class StateClient implements SharedState {
  readonly engine: string;
  readonly processes: StateEngineType['processes'];
  readonly #use: EngineInUse;
  readonly #probe: StateArea;
  readonly #areas = new Map<string, StateArea>();
  #failures = 0;
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
      const isReady = await endsWithin(START_TIME, this.#use.engine.start());
      if (!isReady) throw new Error(`settings.state: "${this.engine}" is not ready after ${START_TIME} ms`);
    } catch (error) {
      throw new Error(this.#use.hide(messageOf(error)));
    }
    // One that answers may still refuse what the service will ask for, such as keys with this prefix.
    await this.#probe.swap('probe', undefined, undefined).catch((error: unknown) => {
      throw new Error(`settings.state: ${this.#use.hide(messageOf(error))}`);
    });
    this.#look(LOOK);
  }

  available(): boolean {
    return this.#failures < FAILURES;
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
    const { engine, log } = this.#use;
    if (!(await endsWithin(STOP_TIME, engine.close())))
      log.error('the engine of settings.state did not stop in time', { engine: this.engine });
  }

  #bounded(area: StateArea): StateArea {
    return {
      get: (...args) => this.#run('get', () => area.get(...args)),
      swap: (...args) => this.#run('swap', () => area.swap(...args)),
      take: (...args) => this.#run('take', () => area.take(...args)),
    };
  }

  async #run<T>(command: keyof StateArea, ask: () => Promise<T>): Promise<T> {
    if (!this.available()) {
      this.#measured(command, 'rejected', 0);
      throw new StateUnavailable(`the engine of settings.state is away (${this.engine})`);
    }
    return this.#ask(command, ask);
  }

  async #ask<T>(command: keyof StateArea, ask: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      const answer = await this.#inTime(ask());
      this.#succeeded();
      this.#measured(command, 'done', performance.now() - began);
      return answer;
    } catch (error) {
      const reason = this.#use.hide(messageOf(error));
      this.#failed(reason);
      this.#measured(command, 'failed', performance.now() - began);
      throw new StateUnavailable(reason);
    }
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const { timeout = TIMEOUT } = this.#use.type;
    if (timeout === 'none') return answer;
    const late = Symbol('late');
    const first = await within<T | typeof late>(timeout, answer, () => late);
    if (first !== late) return first as T;
    // On a busy machine the timer is heard before an answer that has come long ago.
    const second = await Promise.race([answer, turn().then(() => turn(late))]);
    if (second === late) throw new StateUnavailable(`no answer within ${timeout} ms`);
    return second as T;
  }

  #succeeded(): void {
    const wasAway = !this.available();
    this.#failures = 0;
    if (wasAway) this.#use.log.info('the engine of settings.state is back', { engine: this.engine });
  }

  #failed(error: string): void {
    this.#failures += 1;
    if (this.#failures === FAILURES)
      this.#use.log.error('the engine of settings.state is away', { engine: this.engine, error });
    if (this.#failures === 1) this.#look(DOUBT);
  }

  /**
   * Asks, in a while and from then on, for a change that changes nothing: an engine that can only be read is away, too. One that
   * has failed must write before it is back, since a full one can still delete.
   */
  #look(delay: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const next = this.#failures > 0 ? '' : undefined;
      await this.#ask('swap', () => this.#probe.swap('probe', undefined, next, { ttl: 1 })).catch(() => undefined);
      this.#look(this.#failures > 0 && this.available() ? DOUBT : LOOK);
    }, delay).unref();
  }
}

/** The kind of engine that a config asks for, if it asks for one and a plugin has it. */
export function engineTypeOf({ config, plugins }: LoadedConfig): readonly [name: string, StateEngineType] | undefined {
  const chosen = stateKey.in(config);
  const types = plugins.flatMap(({ definition }) => Object.entries(definition.engines ?? {}));
  return isRecord(chosen) ? types.find(([name]) => name === chosen.type) : undefined;
}

/** The engine that a config asks for, not started yet; nothing where state is kept in the process. */
export function openState(loaded: LoadedConfig, services: EngineServices): StateClient | undefined {
  const chosen = stateKey.in(loaded.config);
  if (!isRecord(chosen)) return undefined;
  const { type: asked, ...rest } = chosen;
  const [name, type] = engineTypeOf(loaded) ?? [];
  if (name === undefined || type === undefined) throw new Error(`no plugin has the engine "${String(asked)}"`);
  const engine = type.open(rest, services);
  return new StateClient({ name, type, engine, log: services.log, hide: loaded.hide });
}

/** Whether two configs ask for the same engine. */
export function isSameState(one: LoadedConfig, other: LoadedConfig): boolean {
  return JSON.stringify(stateOf(one)) === JSON.stringify(stateOf(other));
}

/** The engine that a config asks for, and its own config. */
export function stateOf({ config }: LoadedConfig): unknown {
  return stateKey.in(config) ?? 'memory';
}

/** Whether an endpoint cannot be served while the engine is away. Of an engine for one process, modes need nothing. */
export function stateNeeds(
  definitions: readonly Definition[],
  shared: Pick<SharedState, 'processes'> | undefined,
): (endpoint: Endpoint) => boolean {
  const needs = definitions.flatMap(({ needsState = {} }) => needsState);
  const auth = new Set(needs.flatMap((need) => need.auth ?? []));
  const modes = new Set(shared?.processes === 'one' ? [] : needs.flatMap((need) => need.modes ?? []));
  return ({ mode, auth: methods }) => modes.has(mode) || methods.every(({ type }) => auth.has(type));
}

/** What is measured of an engine. */
export function stateMeters(meters: Meters, state: StateClient): Measured {
  const commands: Measure<'command' | 'outcome'> = meters.counter({
    name: 'state_commands_total',
    help: 'Commands to the engine of settings.state: done, failed, or rejected while it was away',
    labels: ['command', 'outcome'],
  });
  const seconds: Measure<'command'> = meters.histogram({
    name: 'state_command_duration_seconds',
    help: 'Duration of commands to the engine of settings.state',
    labels: ['command'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  });
  const available = { name: 'state_available', help: 'Whether the engine of settings.state answers: 1 or 0' };
  meters.gauge({ ...available, across: 'min' }, () => (state.available() ? 1 : 0));
  return (command, outcome, milliseconds) => {
    commands({ command, outcome }, 1);
    if (outcome !== 'rejected') seconds({ command }, milliseconds / 1000);
  };
}
