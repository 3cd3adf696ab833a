import type { Address } from '../lib/eth/hex.ts';
import type { Awaitable, Endpoint, Exchange, Json, Parameters } from './kernel.ts';
import type { Log } from './log.ts';
import type { Meters } from './meters.ts';
import type { ServiceDescription } from './openapi.ts';
import type { SharedState } from './state/area.ts';
import type { Debts } from './state/debts.ts';
import type { States } from './state/state.ts';

/** Something outside the process that endpoints need. `GET /ready` names those that are away. */
export interface Dependency {
  /** As `/ready` names it. */
  readonly name: string;
  /** Whether it did what it was last asked for. */
  isAvailable(): boolean;
  /** Whether an endpoint cannot be served without it. */
  isNeeded(endpoint: Endpoint): boolean;
}

/** What a running service shows its operators: at `/status` of the metrics port, and by the command `status`. */
export interface Status {
  /**
   * Adds a part. Lists that several plugins show as the same part stand there as one.
   * @param part its name, such as `breakers`. @param read gives its value when it is read; all clients of that port can read it.
   */
  show(part: string, read: () => Json): void;
  /** All parts of the config in force, by name. */
  read(): Readonly<Record<string, Json>>;
}

/** The service's processes on this machine, as one of them sees them. */
export interface Workers {
  /** How many there are: each may let in such a part of a limit. */
  readonly count: number;
  /** Says what this process adds to a topic whenever it is asked; in the place of what was said of the topic before. */
  offer(topic: string, own: () => Promise<unknown>): void;
  /**
   * Asks every process what it adds to a topic. Values travel as JSON.
   * @returns the values, that of this process first, without processes that offered nothing or do not answer within two seconds.
   */
  gather(topic: string): Promise<unknown[]>;
}

/** An endpoint's answer to another plugin. */
export interface AskedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The client and the manner in which a plugin asks an endpoint. */
export interface AskOptions {
  /** The request on whose behalf it asks. */
  readonly as: Exchange;
  /** Request headers in place of those of that request, by lower-case names; `undefined` leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  /** The mode in which the endpoint answers, in place of its own. */
  readonly mode?: string | undefined;
}

/** The functions that plugins have at the stage `price`. */
export interface Prices {
  /** Names of plugins, by the names of their prices. Complete once all plugins are set up. */
  providers(): ReadonlyMap<string, string>;
  /** Asks for one, behind the guard and on the budget of its plugin. @throws Refusal */
  priceOf(name: string, parameters: Parameters, exchange: Exchange): Awaitable<bigint | undefined>;
}

/** What `setup` gets from the service. */
export interface Services {
  /** The whole validated configuration; read it through config keys. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The configuration without what no answer depends on, by what plugins say of their keys. */
  readonly answerConfig: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly Endpoint[];
  /** Of the service's program. */
  readonly version: string;
  /** The signer's address. */
  readonly node: Address;
  /** Names of the request headers that carry credentials, of all auth methods of the service. */
  readonly credentials: readonly string[];
  /** Names of the response headers that scripts of other origins may read, of all plugins. */
  readonly exposed: readonly string[];
  readonly log: Log;
  /** Absolute path of one that is relative to the config file. */
  path(relative: string): string;
  /** A text without the values of the config's variables, for what comes from elsewhere and goes into the log. */
  hide(text: string): string;
  /** Epoch milliseconds. */
  now(): number;
  /** What outlives a reload of the config. */
  readonly states: States;
  /** The engine of `settings.state`; without it, state is kept in this process. */
  readonly stateEngine?: SharedState | undefined;
  /** What is owed to clients: the service does not end, within bounds, before it is paid. */
  readonly debts: Debts;
  /** What endpoints depend on: that engine, and what plugins have said. Complete once all plugins are set up. */
  dependencies(): readonly Dependency[];
  /** The processes that serve together, if there are several. */
  readonly workers?: Workers | undefined;
  /** For what is worth measuring. */
  readonly meters: Meters;
  /** For what operators want to see of a running service. */
  readonly status: Status;
  /** The plugin's own budget: milliseconds per request, as configured. */
  readonly budget: number | 'none';
  /**
   * Asks an endpoint as the client of a request could have done by itself. It is let in, authenticated, limited, paid for and
   * logged as another request with the same headers and address, and has budgets of its own. The plugin's budget does not
   * run meanwhile.
   * @param endpointId as in the path of a request.
   * @param parameters as in the body of a request.
   * @returns the response, whatever its status; its body is text, JSON unless the endpoint streams.
   * @throws TypeError for parameters that JSON cannot carry.
   */
  ask(endpointId: string, parameters: Parameters, options: AskOptions): Promise<AskedResponse>;
  /**
   * Lets a request in as `ask` does with the requests that it makes: for what a route that admits `asked` answers by itself.
   * @throws Refusal
   */
  admit(exchange: Exchange): Promise<void>;
  /** What requests cost, by the plugins that say so. */
  readonly prices: Prices;
  /**
   * Has a stop, and a reload, wait for work that goes on beside requests, such as a webhook. They wait as long as for a request, and no longer.
   * A rejection is an error in the log.
   * @throws TypeError for what is no promise.
   */
  background(work: Promise<unknown>): void;
  /** Whether the service takes requests: `starting` until every plugin has started, `stopping` once it was told to stop. */
  phase(): Phase;
  /** What all plugins say of the service, for those who publish it. @throws Error where two contradict each other. */
  describe(): ServiceDescription;
}

export type Phase = 'starting' | 'serving' | 'stopping';
