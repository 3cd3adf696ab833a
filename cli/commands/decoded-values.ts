import type { Endpoint } from '../../kernel/values.ts';
import { areElementary, type Decoded, decodeAbi } from '../../lib/eth/decode-abi.ts';
import { keys, reservedParameters } from '../../plugins-sdk/keys.ts';
import type { Verification } from '../../verify/index.ts';
import { type Given, UsageError } from '../arguments.ts';
import { givenConfig } from './given-config.ts';

/** A value of an answer, and the factor that the endpoint has multiplied it by. */
interface DecodedValue extends Decoded {
  readonly times?: string;
}

type Verified = Exclude<Verification, { ok: false }>;

/** The types and factors of an endpoint's encoding; both are comma-separated lists. */
interface Encoding {
  readonly type: string;
  readonly times?: string | undefined;
}

/**
 * Decodes the values of an answer, by the types of `--type` or of its endpoint in the config.
 * Returns undefined if neither was given, and for raw JSON without `--type`.
 * @throws Error when the signed data is no encoding of these types.
 */
export function decodedValues(
  given: Given,
  source: string,
  { signedData, kind, endpointId }: Verified,
  known: Known | undefined,
): DecodedValue[] | undefined {
  const encoding = givenTypes(given) ?? (known && configuredEncoding(known, source, endpointId));
  if (encoding === undefined) return undefined;
  if (kind === 'raw') throw new Error(`${source}: rawData is JSON, which has no types: leave --type out`);
  const values = decodeAbi(signedData, encoding.type);
  if (values === undefined)
    throw new Error(`${source}: data is no ABI encoding of ${encoding.type}: it has other types, or is encrypted`);
  const factors = encoding.times === undefined || encoding.times === '*' ? [] : encoding.times.split(',');
  return values.map(({ type, value }, i) => {
    const times = factors.length === 1 ? factors[0] : factors[i];
    const text = value.startsWith('"') ? String(JSON.parse(value)) : value;
    return { type, value: text, ...(times && /^u?int/.test(type) && { times: times.trim() }) };
  });
}

/** Returns the line of output for a value. */
export function valueLine({ type, value, times }: DecodedValue): string {
  return `Value: ${value} (${type}${times === undefined ? '' : ` × ${times}`})`;
}

/** @throws UsageError */
function givenTypes(given: Given): Encoding | undefined {
  const type = given.optional('type');
  const isConfigForTypes = given.optional('config') !== undefined && given.optional('parameters') === undefined;
  if (type !== undefined && isConfigForTypes)
    throw new UsageError('only one of --type and --config can be given: each says which types the value has');
  if (type !== undefined && !areElementary(type))
    throw new UsageError('option --type <types> must be elementary ABI types, such as int256 or uint8,string');
  return type === undefined ? undefined : { type };
}

/** The endpoint of an answer in the config of `-c`. */
export interface Known {
  /** The config file. */
  readonly file: string;
  /** The endpoint that the answer names, if the config has it. */
  readonly endpoint: Endpoint | undefined;
}

/** Finds an answer's endpoint in the config of `-c`. @param answer an unverified answer. */
export async function configuredEndpoint(given: Given, answer: unknown): Promise<Known | undefined> {
  if (given.optional('config') === undefined) return undefined;
  const { endpoints, file } = await givenConfig(given);
  const { endpointId: named }: { readonly endpointId?: unknown } = Object(answer);
  return { file, endpoint: endpoints.find(({ id }) => typeof named === 'string' && named.toLowerCase() === id) };
}

function configuredEncoding({ endpoint, file }: Known, source: string, id: string): Encoding | undefined {
  if (endpoint === undefined)
    throw new Error(`${source}: the response is of endpoint ${id}, which ${file} does not have`);
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return undefined;
  if (reservedParameters(endpoint).includes('_type'))
    throw new Error(`${source}: requesters choose the type of ${endpoint.api}/${endpoint.name}: say it with --type`);
  return encoding;
}
