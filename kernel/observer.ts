import type { Exchange } from './exchange.ts';
import type { Ledger } from './ledger.ts';
import type { StageName } from './stages.ts';

export interface StageEvent {
  readonly exchange: Exchange;
  readonly stage: StageName;
  readonly milliseconds: number;
  /** Whether a plugin had something to say, none had, or the request ended here. */
  readonly outcome: 'answered' | 'silent' | 'refused';
}

export interface CallEvent {
  readonly exchange: Exchange;
  readonly plugin: string;
  readonly stage: string;
  /** What the plugin has left in this request, and what its functions used; absent where it has no budget. */
  readonly ledger: Ledger | undefined;
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

/** One observer that tells many; a member is absent where nobody listens. What one of them throws goes to `complain`. */
export function observeAll(observers: readonly Observer[], complain: (error: unknown) => void): Observer {
  const tell = <A extends unknown[]>(listeners: ((...args: A) => void)[]): ((...args: A) => void) | undefined => {
    if (listeners.length === 0) return undefined;
    return (...args) => {
      for (const listen of listeners) {
        try {
          listen(...args);
        } catch (error) {
          complain(error);
        }
      }
    };
  };
  const stage = tell(observers.flatMap((observer) => observer.stage?.bind(observer) ?? []));
  const call = tell(observers.flatMap((observer) => observer.call?.bind(observer) ?? []));
  const response = tell(observers.flatMap((observer) => observer.response?.bind(observer) ?? []));
  return { ...(stage && { stage }), ...(call && { call }), ...(response && { response }) };
}
