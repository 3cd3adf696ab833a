import type { Clock } from './budget.ts';
import type { Flights } from './flights.ts';
import type { Observer } from './observer.ts';
import { type Contracts, type Hidden, type Stage, type StageName, stageOf } from './stages.ts';
import type { CallContext } from './values.ts';
import type { WaitGroup } from './wait-group.ts';

/** Who is called and with how much time: what the guard knows of a plugin. */
export interface Guarded {
  readonly plugin: string;
  /** Milliseconds per request, or none: the plugin bounds its own stages. */
  readonly budget: number | 'none';
  /** Charges its budget, where that is not the time that passes. */
  readonly clock?: Clock | undefined;
}

/** What the guard has for all plugins alike. */
export interface GuardOptions {
  readonly contracts: Contracts;
  /** Freezes what the plugin gets of a response, if need be. */
  readonly protect?: Contracts['protect'] | undefined;
  /** Told of every failure after which a request goes on. */
  readonly complain: (complaint: { plugin: string; stage: string; requestId: string; error: unknown }) => void;
  /** Complete once every plugin is registered. */
  readonly hidden: Hidden;
  /** Work that a stop waits for. */
  readonly running: WaitGroup;
  /** May get its members later, when every plugin is registered. */
  readonly observer?: Observer;
}

export type PluginFunction = (...args: unknown[]) => unknown;
export type Args = readonly unknown[];

/** A stage's contract with its type erased; {@link contractOf} looked it up by the stage's name. */
interface Contract {
  context?(args: Args, call: CallContext, hidden: Hidden, plugin: string): unknown;
  ended?(context: unknown, args: Args, plugin: string): void;
  accept?(value: unknown, args: Args, plugin: string): unknown;
  /** Reads what a function of an onion hands to the next one. */
  input?(value: unknown, args: Args): unknown;
}

/** A function of a plugin at a stage, and all that is known of it before it is called. */
export interface Tap extends Guarded {
  readonly stage: StageName;
  readonly fn: PluginFunction;
  readonly row: Stage;
  readonly contract: Contract;
  readonly options: GuardOptions;
  /** What its calls share; in an onion only. */
  readonly flights: Flights | undefined;
}

/** What the SDK says of a stage. */
export function contractOf(stage: StageName, { contexts, inputs, results }: Contracts): Contract {
  const { context, returns } = stageOf(stage);
  if (context) return (contexts as unknown as Readonly<Record<string, Contract>>)[stage] ?? {};
  const accept = returns && (results as Readonly<Record<string, Contract['accept']>>)[returns];
  const input = (inputs as Readonly<Record<string, Contract['input']>>)[stage];
  return { ...(accept && { accept }), ...(input && { input }) };
}
