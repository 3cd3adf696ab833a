import { isCovered, keys, receiptKey, reservedParameters } from '../../plugins-sdk/config.ts';
import type { Endpoint, Json } from '../../plugins-sdk/index.ts';
import type { Price, ServiceDescription } from '../../plugins-sdk/openapi.ts';

/** A parameter that a client may or must give. */
export interface PublicParameter {
  readonly name: string;
  /** `body` parameters may hold any JSON; all others a string, number or boolean. */
  readonly in: 'query' | 'header' | 'path' | 'cookie' | 'body';
  readonly required: boolean;
  /** What is sent where the client gives nothing; absent where there is none or it is secret. */
  readonly default?: string | number | boolean;
  readonly description?: string;
  /** JSON Schema of its value; absent where there is none or the value is secret. */
  readonly schema?: Readonly<Record<string, Json>>;
}

/** The reserved parameters with which a client chooses what the operator left open with `*`. */
export type ReservedParameter = ReturnType<typeof reservedParameters>[number];

/** What anyone may know of an endpoint: nothing of the upstream, its headers, fixed and secret values, keys or nodes. */
export interface PublicEndpoint {
  readonly id: string;
  readonly api: string;
  readonly name: string;
  readonly description?: string;
  readonly mode: string;
  /** In the order in which they are tried; any one is enough. Types only. */
  readonly auth: readonly string[];
  /** What a request costs, in one of several ways; absent where it costs nothing. */
  readonly prices?: readonly Price[];
  /** In the order of the config, without those that are fixed. */
  readonly parameters: readonly PublicParameter[];
  /** The reserved parameters that it takes, all of them required. */
  readonly reserved: readonly ReservedParameter[];
  /** How the answer is encoded; absent where raw JSON is signed. A `*` is chosen by the client. */
  readonly encoding?: {
    readonly type: string;
    readonly path: string;
    readonly times?: string;
    readonly exact?: boolean;
  };
  /** What else is to be known of the answer. */
  readonly remarks?: readonly string[];
  /** The names of the parameters that the receipts of its answers cover, reserved ones apart; absent where it makes none. */
  readonly receipt?: readonly string[];
}

function descriptionOf(value: unknown): { description?: string } {
  return typeof value === 'string' && value !== '' ? { description: value } : {};
}

function isScalar(value: Json | undefined): value is string | number | boolean {
  return value !== undefined && value !== null && typeof value !== 'object';
}

function parametersOf(endpoint: Endpoint): PublicParameter[] {
  return (keys.parameters.of(endpoint) ?? [])
    .filter(({ fixed }) => fixed === undefined)
    .map(({ name, in: place = 'query', required = false, secret = false, default: fallback, description, schema }) => ({
      name,
      in: place,
      required,
      ...(isScalar(fallback) && !secret ? { default: fallback } : {}),
      ...descriptionOf(description),
      ...(schema === undefined || secret ? {} : { schema }),
    }));
}

function coveredNames(endpoint: Endpoint): string[] {
  return (keys.parameters.of(endpoint) ?? []).filter(isCovered).map(({ name }) => name);
}

/** What may be published of an endpoint. */
export function publicEndpoint(endpoint: Endpoint, { auth: ways, remarks }: ServiceDescription): PublicEndpoint {
  const { id, api, name, mode, auth, block } = endpoint;
  const encoding = keys.encoding.of(endpoint);
  const remarked = remarks.get(id) ?? [];
  const prices = auth.flatMap((method) => ways.get(method.type)?.prices?.(method) ?? []);
  return {
    id,
    api,
    name,
    ...descriptionOf(block.description),
    mode,
    auth: auth.map((method) => method.type),
    ...(prices.length === 0 ? {} : { prices }),
    parameters: parametersOf(endpoint),
    reserved: reservedParameters(endpoint),
    ...(encoding === undefined ? {} : { encoding }),
    ...(remarked.length === 0 ? {} : { remarks: remarked }),
    ...(receiptKey.of(endpoint) === true ? { receipt: coveredNames(endpoint) } : {}),
  };
}
