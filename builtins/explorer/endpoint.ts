import { keys, receiptKey, reservedParameters } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import type { DescribedAuth, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import { publicSchema } from '../shared/parameter-schema.ts';
import { coveredNames, requiredIn } from '../shared/path-parameters.ts';

/** The reserved parameters with which a client chooses what the operator left open with `*`. */
export type ReservedParameter = ReturnType<typeof reservedParameters>[number];

/** A parameter that a client may or must give. */
export type PublicParameter = PublicEndpoint['parameters'][number];

/** The public facts of an endpoint: nothing of the upstream, its headers, fixed and secret values, keys or nodes. */
export type PublicEndpoint = ReturnType<typeof publicEndpoint>;

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

function parametersOf(endpoint: Endpoint) {
  const isRequired = requiredIn(endpoint);
  const free = (keys.parameters.of(endpoint) ?? []).filter(({ fixed }) => fixed === undefined);
  return free.map((parameter) => {
    const { name, in: place = 'query', secret = false, default: fallback, description } = parameter;
    return {
      // Its place is that in the upstream request; `none` is for paths into the answer alone.
      ...{ name, in: place, required: isRequired(parameter), description: description || undefined },
      default: secret ? undefined : fallback,
      schema: publicSchema(parameter),
    };
  });
}

/** Describes a way in. Without `header` it has no credentials, or the plugin does not describe them. */
function accessOf(type: string, { scheme, title = type, hints = [], example }: DescribedAuth) {
  const { in: place, name } = scheme ?? {};
  const header = place === 'header' && typeof name === 'string' ? name : undefined;
  return { title, open: scheme === undefined ? true : undefined, header, hints, example };
}

/** Returns the public facts of an endpoint; JSON leaves out undefined members. */
export function publicEndpoint(endpoint: Endpoint, { auth: ways, modes, remarks }: ServiceDescription) {
  const { id, api, name, mode, auth, block } = endpoint;
  const { description } = block;
  const types = [...new Set(auth.map((method) => method.type))];
  const prices = auth.flatMap((method) => ways.get(method.type)?.prices?.(method) ?? []);
  return {
    ...{ id, api, name, mode, modeTitle: modes.get(mode)?.title },
    description: typeof description === 'string' && description !== '' ? description : undefined,
    // In the order in which they are tried; any one is enough.
    auth: types.map((type) => accessOf(type, ways.get(type) ?? { scheme: {} })),
    // One of them is paid.
    prices: prices.length === 0 ? undefined : prices,
    parameters: parametersOf(endpoint),
    reserved: reservedParameters(endpoint),
    encoding: keys.encoding.of(endpoint),
    remarks: remarks.get(id),
    // The parameters that its receipts cover, reserved ones apart.
    receipt: receiptKey.of(endpoint) === true ? coveredNames(endpoint) : undefined,
  };
}
