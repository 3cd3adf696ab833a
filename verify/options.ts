import { CanonicalJsonError } from '../lib/json/canonical-json.ts';
import { type Hex, isAddress, isHex } from './ethereum.ts';
import { requestHashOf } from './receipt.ts';
import { Refusal } from './refusal.ts';

/** What an answer must be, beside properly signed. A name that is not one of these is an error, never ignored. */
export interface VerifyOptions {
  /**
   * The address that must have signed. `null` accepts every signer, which proves no more than that somebody signed. It has
   * to be said, so that a setting that is missing does not switch the check off.
   */
  readonly node: string | null;
  /** The endpoint that must have been asked. Without it any answer of the signer will do. */
  readonly endpointId?: string;
  /**
   * The parameters that must have been asked, as `requestHashOf` takes them: the answer needs a receipt of them. Without this
   * option receipts are not looked at, and the answer to any parameters of the endpoint will do.
   */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Seconds since the signing that are too many when exceeded. Without it neither age nor clock is looked at. */
  readonly maxAge?: number;
  /** The time that {@link maxAge} counts from: Unix seconds. By default that of the clock. */
  readonly now?: number;
}

/** The options, checked. */
export interface Wanted {
  readonly node: Hex | null;
  readonly endpointId: Hex | undefined;
  readonly requestHash: Hex | undefined;
  readonly age: { readonly max: number; readonly now: number } | undefined;
}

const OPTIONS = ['node', 'endpointId', 'parameters', 'maxAge', 'now'];

/** @throws Refusal */
export function readOptions(options: VerifyOptions): Wanted {
  if (typeof options !== 'object' || options === null) throw wrongOption('there must be an object of them');
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw wrongOption(`${unknown.slice(0, 40)} is none`);
  const { node, endpointId, parameters, maxAge, now = Date.now() / 1000 } = options;
  if (node !== null && !isAddress(node)) {
    throw wrongOption('node must be an address (with the right checksum, if any), or null for any signer');
  }
  // An option that is there and undefined is a value that somebody forgot to set, not a check to leave out.
  if ('endpointId' in options && !isHex(endpointId, 32)) throw wrongOption('endpointId must be 0x and 64 hex digits');
  if ('maxAge' in options && !isSeconds(maxAge)) throw wrongOption('maxAge must be a number of seconds, 0 or more');
  if (!isSeconds(now)) throw wrongOption('now must be a number of Unix seconds');
  return {
    node,
    endpointId: isHex(endpointId) ? endpointId : undefined,
    requestHash: 'parameters' in options ? hashOf(parameters) : undefined,
    age: maxAge === undefined ? undefined : { max: maxAge, now },
  };
}

function hashOf(parameters: VerifyOptions['parameters']): Hex {
  try {
    if (parameters !== undefined) return requestHashOf(parameters);
  } catch (error) {
    if (error instanceof CanonicalJsonError) throw wrongOption(`parameters must hold JSON values: ${error.message}`);
    if (!(error instanceof TypeError)) throw error;
  }
  throw wrongOption('parameters must be an object');
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function wrongOption(message: string): Refusal {
  return new Refusal('options', `wrong options: ${message}`);
}
