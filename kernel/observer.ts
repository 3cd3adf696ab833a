import type { Budget } from './budget.ts';
import type { Exchange } from './exchange.ts';
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

/** An observer and whose it is. */
interface Named {
  readonly name: string;
  readonly observe: Observer;
}

/** One observer that tells many; a member is absent where nobody listens. What one of them throws goes to `complain`. */
export function observeAll(observers: readonly Named[], complain: (plugin: string, error: unknown) => void): Observer {
  const tell = <A extends unknown[]>(pick: (observe: Observer) => ((...args: A) => unknown) | undefined) => {
    const listeners = observers.flatMap(({ name, observe }) => {
      const listen = pick(observe)?.bind(observe);
      return listen === undefined ? [] : [{ name, listen }];
    });
    if (listeners.length === 0) return undefined;
    return (...args: A): void => {
      for (const { name, listen } of listeners) {
        try {
          const result = listen(...args);
          if (result instanceof Promise) result.catch((error) => complain(name, error));
        } catch (error) {
          complain(name, error);
        }
      }
    };
  };
  const stage = tell((observe) => observe.stage);
  const call = tell((observe) => observe.call);
  const response = tell((observe) => observe.response);
  return { ...(stage && { stage }), ...(call && { call }), ...(response && { response }) };
}
