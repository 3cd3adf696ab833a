import type { Exchange } from '../kernel/exchange.ts';
import type { Awaitable, Endpoint, Json, Parameters } from '../kernel/values.ts';
import type { Address } from '../lib/eth/hex.ts';
import type { Log } from './log.ts';
import type { Meters } from './meters.ts';
import type { ServiceDescription } from './openapi.ts';
import type { SharedState } from './state/area.ts';
import type { Debts } from './state/debts.ts';
import type { States } from './state/store.ts';

/** A thing outside the process that endpoints need. `GET /ready` names each that is unavailable. */
export interface Dependency {
  /** Its name in the response of `/ready`. */
  readonly name: string;
  /** Returns whether its latest call succeeded. */
  isAvailable(): boolean;
  /** Returns whether an endpoint cannot be served without it. */
  isNeeded(endpoint: Endpoint): boolean;
}

/** The status that a running service shows operators, at `/status` of the metrics port and by the command `status`. */
export interface Status {
  /**
   * Adds a part. If several plugins add lists under one name, the status shows them as one list.
   * @param part name such as `breakers`. @param read returns the present value, which all clients of that port can read.
   */
  show(part: string, read: () => Json): void;
  /** Returns all parts of the config in force, by name. */
  read(): Readonly<Record<string, Json>>;
}

/** The service's processes on this machine, as one of them sees them. */
export interface Workers {
  /** Number of processes. Each may admit an equal part of a limit. */
  readonly count: number;
  /** Sets the function that gives this process's value for a topic, in place of an earlier one. */
  offer(topic: string, own: () => Promise<unknown>): void;
  /**
   * Asks every process for its value for a topic. Values are sent as JSON.
   * @returns the values, this process's first. Processes that offered nothing or do not answer within two seconds are left out.
   */
  gather(topic: string): Promise<unknown[]>;
}

/** An endpoint's response to a plugin that asked it. */
export interface AskedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How a plugin asks an endpoint, and for which client. */
export interface AskOptions {
  /** The client's request on whose behalf the plugin asks. */
  readonly as: Exchange;
  /** Headers that replace those of that request, by lower-case name; `undefined` removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  /** The mode to answer in, in place of the endpoint's own. */
  readonly mode?: string | undefined;
}

/** The prices that plugins compute at the stage `price`. */
export interface Prices {
  /** Returns the names of plugins by the names of their prices; complete once all plugins are set up. */
  providers(): ReadonlyMap<string, string>;
  /** Asks a plugin for a price, through the guard and on that plugin's budget. @throws Refusal */
  priceOf(name: string, parameters: Parameters, exchange: Exchange): Awaitable<bigint | undefined>;
}

/** The service as a plugin's `setup` gets it. */
export interface Services {
  /** The whole validated configuration; read it through config keys. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The configuration without the keys that no answer depends on ({@link Definition.changesAnswers}). */
  readonly answerConfig: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly Endpoint[];
  /** The version of the service's program. */
  readonly version: string;
  /** The signer's address. */
  readonly node: Address;
  /** Names of the request headers that carry credentials, of all auth methods of the service. */
  readonly credentials: readonly string[];
  /** Names of the response headers that scripts of other origins may read, of all plugins. */
  readonly exposed: readonly string[];
  readonly log: Log;
  /** Returns the absolute form of a path that is relative to the config file. */
  path(relative: string): string;
  /** Returns a text without the values of the config's variables, so that foreign texts can be logged. */
  hide(text: string): string;
  /** Returns epoch milliseconds. */
  now(): number;
  /** Values that outlive a reload of the config. */
  readonly states: States;
  /** The engine of `settings.state`; without it, state is kept in this process. */
  readonly stateEngine?: SharedState | undefined;
  /** Work that is owed to clients, such as a paid answer. The service waits for it, within bounds, before it ends. */
  readonly debts: Debts;
  /** Returns all dependencies of endpoints: that engine and those of plugins. Complete once all plugins are set up. */
  dependencies(): readonly Dependency[];
  /** The processes of the service, if there are several. */
  readonly workers?: Workers | undefined;
  /** Makes the plugin's metrics. */
  readonly meters: Meters;
  /** Shows operators the plugin's state in a running service. */
  readonly status: Status;
  /** The plugin's own budget as configured, in milliseconds per request. */
  readonly budget: number | 'none';
  /**
   * Asks an endpoint on behalf of a client, in a request of its own. It is admitted, authenticated, limited, paid for and
   * logged like a request from that client with the same headers and address, and has its own budgets. The plugin's budget
   * pauses meanwhile, but not that of a hook which observes.
   * @param endpointId as in the path of a request.
   * @param parameters as in the body of a request.
   * @returns the response, whatever its status. Its body is a text: JSON, unless its headers name another media type.
   * @throws TypeError for parameters that JSON cannot carry; Error for an endpoint that streams, and for requests that ask for
   * themselves or for each other too deep.
   */
  ask(endpointId: string, parameters: Parameters, options: AskOptions): Promise<AskedResponse>;
  /**
   * Asks the stage `admit` whether to let a request in, as `ask` does for its requests. A route that admits `asked` calls it
   * before it answers by itself. @throws Refusal
   */
  admit(exchange: Exchange): Promise<void>;
  /** The prices of requests, from the plugins that compute them. */
  readonly prices: Prices;
  /**
   * Makes a stop, and a reload, wait for work that goes on beside requests, such as a webhook. They wait as long as for a
   * request. A rejection is logged as an error.
   * @throws TypeError for anything but a promise.
   */
  background(work: Promise<unknown>): void;
  /** Returns the service's phase: `starting` until every plugin has started, `stopping` once it was asked to stop. */
  phase(): Phase;
  /** Returns the service's description, made of all plugins' parts. */
  describe(): ServiceDescription;
}

/** A phase of the service. It is ready only while `serving`; a `stopping` one still answers requests until it closes its port. */
export type Phase = 'starting' | 'serving' | 'stopping';
