import { keys, receiptKey, reservedParameters } from '../../plugins-sdk/config.ts';
import type { Endpoint, Json } from '../../plugins-sdk/index.ts';
import type { DescribedAuth, Price, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import { publicSchema } from '../shared/parameter-schema.ts';
import { coveredNames, requiredIn } from '../shared/path-parameters.ts';

/** A parameter that a client may or must give. */
export interface PublicParameter {
  readonly name: string;
  /** Its place in the upstream request; `none` is for paths into the answer alone. A `body` parameter may hold any JSON. */
  readonly in: 'query' | 'header' | 'path' | 'cookie' | 'body' | 'none';
  readonly required: boolean;
  /** The value to send if the client gives none; absent if there is none or it is secret. */
  readonly default?: Json | undefined;
  readonly description?: string | undefined;
  /** JSON Schema of the value; absent if there is none or the value is secret. */
  readonly schema?: Readonly<Record<string, Json>> | undefined;
}

/** The reserved parameters with which a client chooses what the operator left open with `*`. */
export type ReservedParameter = ReturnType<typeof reservedParameters>[number];

/** A way in: what the page shows of a type of `auth`. */
export interface Access {
  readonly title: string;
  /** Whether it lets everyone in. */
  readonly open?: true | undefined;
  /** The request header for the credentials; absent if there is none, or the plugin does not describe it. */
  readonly header?: string | undefined;
  readonly hints: readonly string[];
  /** An example of the header's value, if that is JSON. */
  readonly example?: Readonly<Record<string, unknown>> | undefined;
}

/** The public facts of an endpoint: nothing of the upstream, its headers, fixed and secret values, keys or nodes. */
export interface PublicEndpoint {
  readonly id: string;
  readonly api: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly mode: string;
  readonly modeTitle?: string | undefined;
  /** Its ways in, in the order in which they are tried; any one is enough. */
  readonly auth: readonly Access[];
  /** The prices of a request, of which one is paid; absent if it is free. */
  readonly prices?: readonly Price[] | undefined;
  /** Its parameters in the order of the config, without fixed ones. */
  readonly parameters: readonly PublicParameter[];
  /** The reserved parameters that it takes; all are required. */
  readonly reserved: readonly ReservedParameter[];
  /** The encoding of the answer; absent if raw JSON is signed. The client chooses a `*`. */
  readonly encoding?: ReturnType<typeof keys.encoding.of>;
  /** Further notes on the answer. */
  readonly remarks?: readonly string[] | undefined;
  /** The names of parameters that its receipts cover, reserved ones apart; absent if it makes no receipts. */
  readonly receipt?: readonly string[] | undefined;
}

/** The data of the page; all of it may be public. */
export interface PageData {
  /** The signer's address, as the service states it. */
  readonly node: string;
  /** The operator's name for the service, and notes for clients. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Whether the service describes itself at `openapi.json`, beside the page. */
  readonly openapi: boolean;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
}

function parametersOf(endpoint: Endpoint): PublicParameter[] {
  const isRequired = requiredIn(endpoint);
  return (keys.parameters.of(endpoint) ?? [])
    .filter(({ fixed }) => fixed === undefined)
    .map((parameter) => {
      const { name, in: place = 'query', secret = false, default: fallback, description } = parameter;
      return {
        ...{ name, in: place, required: isRequired(parameter), description: description || undefined },
        default: secret ? undefined : fallback,
        schema: publicSchema(parameter),
      };
    });
}

function accessOf(type: string, { scheme, title = type, hints = [], example }: DescribedAuth): Access {
  const { in: place, name } = scheme ?? {};
  const header = place === 'header' && typeof name === 'string' ? name : undefined;
  return { title, open: scheme === undefined ? true : undefined, header, hints, example };
}

/** Returns the public facts of an endpoint; JSON leaves out undefined members. */
export function publicEndpoint(endpoint: Endpoint, { auth: ways, modes, remarks }: ServiceDescription): PublicEndpoint {
  const { id, api, name, mode, auth, block } = endpoint;
  const { description } = block;
  const types = [...new Set(auth.map((method) => method.type))];
  const prices = auth.flatMap((method) => ways.get(method.type)?.prices?.(method) ?? []);
  return {
    ...{ id, api, name, mode, modeTitle: modes.get(mode)?.title },
    description: typeof description === 'string' && description !== '' ? description : undefined,
    auth: types.map((type) => accessOf(type, ways.get(type) ?? { scheme: {} })),
    prices: prices.length === 0 ? undefined : prices,
    parameters: parametersOf(endpoint),
    reserved: reservedParameters(endpoint),
    encoding: keys.encoding.of(endpoint),
    remarks: remarks.get(id),
    receipt: receiptKey.of(endpoint) === true ? coveredNames(endpoint) : undefined,
  };
}
