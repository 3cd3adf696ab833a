import type { Endpoint, Json, Parameters } from '../../kernel/values.ts';
import type { Address } from '../../lib/eth/hex.ts';
import type { Log } from '../log.ts';
import type { Metrics } from './metrics.ts';

/** A config as in the config file; `version` may be left out. */
export type ServiceConfig = Readonly<Record<string, unknown>>;

/** The options of {@link PluginHarness.serve}. */
export interface ServeOptions {
  /** Variables for `${VAR}`, and the signer's key; without one a throw-away key signs. Default none. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The folder that paths in the config are relative to; default the working directory. */
  readonly folder?: string | undefined;
}

/** The client of a test's request. */
export interface ServiceClient {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The address of the connection; default `127.0.0.1`. */
  readonly ip?: string | undefined;
  /** A signal whose abort makes the client leave. */
  readonly signal?: AbortSignal | undefined;
}

/** An HTTP request to a {@link TestService}. */
export interface ServiceRequest extends ServiceClient {
  /** The HTTP method; default GET. */
  readonly method?: string | undefined;
  /** The path, with the query if there is one. */
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
}

/** A complete response. */
export interface ServiceResponse<B = Json> {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed value of a JSON body, the text of any other. */
  readonly body: B;
}

/** A line of the service's log. */
export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A whole service without a port. */
export interface TestService {
  readonly endpoints: readonly Endpoint[];
  /** The address of the signer of its answers. */
  readonly signer: Address;
  readonly log: readonly LogLine[];
  /** Returns what all its plugins have measured, as {@link PluginHarness.metrics} does; nothing if `settings.metrics` is set. */
  metrics(): Metrics;
  /**
   * Asks an endpoint, as a POST with the parameters in its body.
   * @param endpoint `api/endpoint` as the config names them.
   * @throws TypeError for an endpoint that the config does not have.
   */
  ask<B = Json>(endpoint: string, parameters?: Parameters, client?: ServiceClient): Promise<ServiceResponse<B>>;
  /** Sends any request: to routes, or to endpoints by their IDs, with any body. */
  request<B = Json>(request: ServiceRequest): Promise<ServiceResponse<B>>;
  /** Waits for requests and work in the background, and stops the plugins. */
  stop(): Promise<void>;
}
