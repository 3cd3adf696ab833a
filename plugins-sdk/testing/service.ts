import type { Address } from '../../lib/eth/hex.ts';
import type { Endpoint, Json, Parameters } from '../kernel.ts';
import type { Log } from '../log.ts';
import type { Metrics } from './metrics.ts';

/** A config as its file would have it, `version` left out if you like. */
export type ServiceConfig = Readonly<Record<string, unknown>>;

export interface ServeOptions {
  /** Variables for `${VAR}`, and the signer's key; without one a throw-away key signs. Default none. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The folder of relative paths in the config; default the working directory. */
  readonly folder?: string | undefined;
}

/** Who asks, and how long. */
export interface ServiceClient {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The address of the connection; default `127.0.0.1`. */
  readonly ip?: string | undefined;
  /** The client leaves when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

export interface ServiceRequest extends ServiceClient {
  /** Default GET. */
  readonly method?: string | undefined;
  /** With the query, if there is one. */
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
}

/** A response whose body may still be on its way. */
export interface ServiceStream {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it comes; to stop reading it is to leave. */
  readonly chunks: AsyncIterable<string>;
}

export interface ServiceResponse<B = Json> extends Omit<ServiceStream, 'chunks'> {
  /** The value of JSON, the text of any other media type. */
  readonly body: B;
}

/** A line of the service's log. */
export interface LogLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A whole service, asked without a port. */
export interface TestService {
  readonly endpoints: readonly Endpoint[];
  /** Whose signatures its answers carry. */
  readonly signer: Address;
  readonly log: readonly LogLine[];
  /** What all its plugins have measured, as {@link PluginHarness.metrics} has it; nothing where `settings.metrics` is set. */
  metrics(): Metrics;
  /**
   * Asks an endpoint, as a POST with the parameters in its body.
   * @param endpoint `api/endpoint` as the config names them.
   * @throws TypeError for an endpoint that the config does not have.
   */
  ask<B = Json>(endpoint: string, parameters?: Parameters, client?: ServiceClient): Promise<ServiceResponse<B>>;
  /** Any request: to routes, to endpoints by their IDs, with any body. */
  request<B = Json>(request: ServiceRequest): Promise<ServiceResponse<B>>;
  /** Resolves with the headers of a response, for a body that does not end by itself. */
  open(request: ServiceRequest): Promise<ServiceStream>;
  /** Lets requests and work in the background end, and stops the plugins. */
  stop(): Promise<void>;
}
