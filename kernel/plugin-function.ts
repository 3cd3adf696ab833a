import { types } from 'node:util';
import type { Charge } from './charge.ts';
import { WrongShape } from './stages.ts';
import type { Args, PluginFunction, Tap } from './tap.ts';

/** The last argument, the exchange, serves as the call, too. Spreading the arguments would cost as much as a short function. */
export function called(fn: PluginFunction, args: Args): unknown {
  const [first, second] = args;
  if (args.length === 1) return fn(first, first);
  return args.length === 2 ? fn(first, second, second) : fn(...args, args[args.length - 1]);
}

/** A function among the arguments runs the rest of the pipeline, whose time is charged to nobody. */
export function unchargedRest(arg: unknown, charge: Charge): unknown {
  if (typeof arg !== 'function') return arg;
  return (...args: unknown[]) => {
    const working = charge.pause(async () => arg(...args));
    // The plugin may not wait for it.
    working.catch(() => undefined);
    return working;
  };
}

/** @returns what the contract reads in the value, or the steps in which it reads a large one. @throws WrongShape */
export function accepted({ contract, plugin }: Tap, value: unknown, args: Args): unknown {
  // The guard would take it for the steps of reading a large result.
  if (types.isGeneratorObject(value)) throw new WrongShape('returned a generator: no hook is a generator function');
  return contract.accept?.(value, args, plugin);
}

const { then } = Promise.prototype;

/** The promise of what a call returned, if it did return one. Only those of JavaScript itself are used as they are. */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (typeof value !== 'object' || value === null || !('then' in value) || typeof value.then !== 'function') {
    return undefined;
  }
  return types.isPromise(value) && value.then === then ? value : new Promise((resolve) => resolve(value));
}
