import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Exchange } from '../../../kernel/exchange.ts';
import type { StageName } from '../../../kernel/stages.ts';
import type { SignedResponse } from '../../../kernel/values.ts';
import type { AroundCall } from '../../../plugins-sdk/stage-functions.ts';
import { randomFrom } from '../seed.ts';

/** Choices that follow from a seed. */
export class Draw {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  /** An integer from 0 on. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  one<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

/** What a misbehaving function of a plugin knows of the call that it was asked in. */
export interface Situation {
  readonly stage: StageName;
  readonly args: readonly unknown[];
  /** Of the onion; elsewhere it has a signal only. */
  readonly call: AroundCall<unknown, unknown>;
  readonly draw: Draw;
  /** Milliseconds. */
  readonly budget: number;
  /** Under which some requests of the same time share work. */
  readonly key: string;
  /** What the stage takes for an answer. */
  sound(): unknown;
  /** The client leaves. */
  leave(): void;
  /** Says that a rule was broken. */
  blame(what: string): void;
}

/** What a function of a plugin does. */
export type Act = (situation: Situation) => unknown;

export type RunFn = (options?: { readonly detached?: boolean }) => Promise<SignedResponse>;

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate();
}

export const pause = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
  setTimeout(milliseconds, undefined, { signal });

export const never = () => new Promise<never>(() => undefined);

export const ignore = () => undefined;

const asleep = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the event loop, asleep. */
export const block = (milliseconds: number) => void Atomics.wait(asleep, 0, 0, milliseconds);

/** The request that a function was called for; the public hooks know its id only. */
export function requestIdOf(args: readonly unknown[]): string {
  const [context] = args;
  const inner = args.at(-2) as Exchange | undefined;
  return inner === undefined ? (context as { readonly requestId: string }).requestId : inner.requestId;
}
