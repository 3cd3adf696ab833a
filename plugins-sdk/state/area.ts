import type { Static, TSchema } from 'typebox';
import type { BucketLimit, Taken } from '../../lib/bounded/token-buckets.ts';
import type { Log } from '../log.ts';

export type { BucketLimit, Taken };

/** The value found in place of the expected one; without `value`, none. */
export interface Conflict {
  readonly value?: string;
}

/** How a change is written. */
export interface CompareAndSetOptions {
  /** Milliseconds, by the engine's clock, after which the new value is gone; without it never. */
  readonly ttl?: number;
  /** The new value also lives as long as the one before it would have, where that is longer. */
  readonly keepLonger?: boolean;
  /** Resolves only once the change is where a crash cannot take it back. */
  readonly durable?: boolean;
}

/**
 * One feature's state beyond the process: texts and token buckets by key. A key is one of either kind; the same key of
 * the other kind is another one. Each call is one atomic step on one key, for all processes that share the engine.
 * Every call rejects when the engine cannot answer. Then a change may have been made, or be made yet.
 */
export interface StateArea {
  get(key: string): Promise<string | undefined>;
  /**
   * Puts `next` in the place of `expected`, if that is what stands there.
   * @param expected `undefined`: nothing.
   * @param next `undefined`: the key is deleted.
   * @returns `undefined` when done, else what stands there, and nothing has changed.
   */
  compareAndSet(
    key: string,
    expected: string | undefined,
    next: string | undefined,
    options?: CompareAndSetOptions,
  ): Promise<Conflict | undefined>;
  /**
   * Takes from a bucket, which is full before its first use.
   * @param n most tokens to take; default 1.
   * @param debt tokens that were spent elsewhere already: taken off first, below zero if need be; default 0.
   */
  takeTokens(key: string, limit: BucketLimit, n?: number, debt?: number): Promise<Taken>;
}

/** Keeps state beyond the process. */
export interface StateEngine {
  /** Opens or connects, and looks whether it can be used. @throws Error that says what to do. */
  start(): Promise<void>;
  /** What is wrong with it for state whose loss costs money, each a sentence that says what to set; may change with time. */
  doubts(): readonly string[];
  /** Areas of different names are independent. */
  area(name: string): StateArea;
  /** Lets go of everything. Nothing is called afterwards. */
  close(): Promise<void>;
}

/** What `open` of an engine gets. */
export interface EngineServices {
  readonly log: Log;
  /** Epoch milliseconds. */
  now(): number;
  /** Absolute path of one that is relative to the config file. */
  path(relative: string): string;
}

/** A kind of engine, as a plugin contributes it. */
export interface StateEngineType<S extends TSchema = TSchema> {
  /** Schema of the object under `settings.state`, `type` left out. */
  readonly schema: S;
  /** Whether several processes can share it, or it only outlives the one that uses it. */
  readonly processes: 'one' | 'many';
  /** Milliseconds that a command may take; default 250. Less than 1000: more is beyond the budget of most plugins that wait for it. */
  readonly timeout?: number;
  /** Does nothing slow: `start` does. @param config validated. */
  open(config: Static<S>, services: EngineServices): StateEngine;
}

/** Checks the types of a kind of engine and returns it. */
export function stateEngine<S extends TSchema>(type: StateEngineType<S>): StateEngineType {
  return type;
}

/** The service's engine as plugins use it: bounded in time, paused while it fails. */
export interface SharedState extends Pick<StateEngine, 'area' | 'doubts'> {
  /** Its `type` in the config. */
  readonly engine: string;
  readonly processes: 'one' | 'many';
  /** Whether it answered when it was last asked. */
  available(): boolean;
  /** Milliseconds since a command failed; infinite when none has. */
  sinceFailure(): number;
}

/** The engine did not do what it was asked. */
export class StateUnavailable extends Error {}

/** Some keys have no server now; others are sound. */
export class StatePartUnavailable extends StateUnavailable {}

/** The value of one key is none of this service's; others are sound. */
export class StateUnreadable extends StateUnavailable {
  /** @param key for the log, which only operators see: no secret of a client. */
  constructor(key: string) {
    super(`what stands under ${key} in settings.state cannot be read`);
  }
}
