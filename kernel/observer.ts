import type { Budget } from './budget.ts';
import type { Exchange } from './exchange.ts';
import type { Refusal } from './refusal.ts';
import type { StageName } from './stages.ts';

export interface StageEvent {
  readonly exchange: Exchange;
  readonly stage: StageName;
  readonly milliseconds: number;
  /** Whether a plugin had something to say, none had, or the request ended here. */
  readonly outcome: 'answered' | 'silent' | 'refused';
  /** With what it was refused, here or in a stage inside this one: `stage` says where. */
  readonly refusal?: Refusal | undefined;
}

export interface CallEvent {
  readonly exchange: Exchange;
  readonly plugin: string;
  readonly stage: string;
  /** What the plugin has left in this request, and what its functions used; absent where it has none. */
  readonly budget: Budget | undefined;
  readonly outcome: 'done' | 'failed' | 'exhausted';
}

/** Told of what happens in requests, in order to measure; it cannot change anything, and must return at once. */
export interface Observer {
  stage?(event: StageEvent): void;
  /** A plugin's function ended: each one with a budget, and of the others those that failed. */
  call?(event: CallEvent): void;
  /** The response is on its way (`status`), or the client is gone (499). */
  response?(exchange: Exchange, status: number): void;
}
