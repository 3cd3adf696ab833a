import type { Static, TSchema } from 'typebox';
import type { BucketLimit, Taken } from '../../lib/bounded/token-buckets.ts';
import type { Log } from '../log.ts';

/** The value found in place of the expected one; without `value` there was none. */
export interface Conflict {
  readonly value?: string;
}

/** Options of `StateArea.compareAndSet`. */
export interface CompareAndSetOptions {
  /** Milliseconds, by the engine's clock, after which the new value expires; without it never. */
  readonly ttl?: number;
  /** The new value expires no earlier than the value before it would have. */
  readonly keepLonger?: boolean;
  /** The call resolves only once a crash cannot undo the change. */
  readonly durable?: boolean;
}

/**
 * One feature's state beyond the process: texts and token buckets by key. Texts and buckets have separate keys. Each call is
 * one atomic step on one key, for all processes that share the engine. Every call rejects if the engine cannot answer. The
 * change may then have been made, or may still be made.
 */
export interface StateArea {
  /** Returns the text of a key, or `undefined`. */
  get(key: string): Promise<string | undefined>;
  /**
   * Replaces the value `expected` by `next`, if the key has that value.
   * @param expected `undefined`: the key has no value.
   * @param next `undefined`: the key is deleted.
   * @returns `undefined` if done. Otherwise the value found; nothing has then changed.
   */
  compareAndSet(
    key: string,
    expected: string | undefined,
    next: string | undefined,
    options?: CompareAndSetOptions,
  ): Promise<Conflict | undefined>;
  /**
   * Takes tokens from a bucket, which is full before its first use.
   * @param n most tokens to take; default 1.
   * @param debt tokens already spent elsewhere, which are deducted first, even below zero; default 0.
   */
  takeTokens(key: string, limit: BucketLimit, n?: number, debt?: number): Promise<Taken>;
}

/** An engine that keeps state beyond the process. */
export interface StateEngine {
  /** Opens or connects, and checks that the engine can be used. @throws Error that says what to do. */
  start(): Promise<void>;
  /** Returns the present risks for state whose loss costs money: for each a sentence that says what to set. */
  doubts(): readonly string[];
  /** Returns an area. Areas of different names are independent. */
  area(name: string): StateArea;
  /** Releases connections and other resources. Nothing is called afterwards. */
  close(): Promise<void>;
}

/** The services that a state engine gets when it is opened. */
export interface EngineServices {
  readonly log: Log;
  /** Returns epoch milliseconds. */
  now(): number;
  /** Returns the absolute form of a path that is relative to the config file. */
  path(relative: string): string;
}

/** A kind of state engine that a plugin provides under {@link Definition.engines}. Several processes share what it keeps. */
export interface StateEngineType<S extends TSchema = TSchema> {
  /** Schema of the object under `settings.state`, without `type`. */
  readonly schema: S;
  /** Milliseconds that a command may take; default 250. Keep it below 1000, the budget of most plugins that wait for one. */
  readonly timeout?: number;
  /** Makes the engine. Slow work belongs in its `start`. @param config validated. */
  open(config: Static<S>, services: EngineServices): StateEngine;
}

/** Checks the types of a kind of state engine, and returns it. */
export function stateEngine<S extends TSchema>(type: StateEngineType<S>): StateEngineType {
  return type;
}

/** The service's state engine as plugins get it: its commands are bounded in time, and pause while it fails. */
export interface SharedState extends Pick<StateEngine, 'area' | 'doubts'> {
  /** The engine's `type` in the config. */
  readonly engine: string;
  /** Returns whether the engine takes commands: not from several failures in a row until a command succeeds again. */
  available(): boolean;
  /** Returns the milliseconds since a command failed; infinite if none has. */
  sinceFailure(): number;
}

/** Thrown if the engine did not carry out a command. */
export class StateUnavailable extends Error {}

/** Thrown if the server of some keys is unavailable. Other keys can be used. */
export class StatePartUnavailable extends StateUnavailable {}

/** Thrown if a key's value was not written by this service. Other keys can be used. */
export class StateUnreadable extends StateUnavailable {
  /** @param key shown in the log, which only operators see; it must be no secret of a client. */
  constructor(key: string) {
    super(`what stands under ${key} in settings.state cannot be read`);
  }
}

/** Most attempts. Each fails only if another writer has succeeded. */
const TRIES = 20;

/**
 * Changes a value, even while other processes write to the same key.
 * @param change gets the value and returns the new one, or `undefined` to delete it. If it returns the text that it got, nothing
 *   is written. It may be called several times.
 * @returns the value after the change.
 * @throws StateUnavailable
 */
export async function update(
  area: StateArea,
  key: string,
  change: (text: string | undefined) => string | undefined,
  options?: CompareAndSetOptions,
): Promise<string | undefined> {
  let text = await area.get(key);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const next = change(text);
    if (next === text) return text;
    const conflict = await area.compareAndSet(key, text, next, options);
    if (conflict === undefined) return next;
    text = conflict.value;
  }
  throw new StateUnavailable('others change the same key of settings.state all the time');
}
