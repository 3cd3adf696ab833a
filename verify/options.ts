import { CanonicalJsonError } from '../lib/json/canonical-json.ts';
import { type Hex, isAddress, isHex } from './ethereum.ts';
import { requestHashOf } from './receipt.ts';
import { Refusal } from './refusal.ts';

/** The requirements for an answer, beside a valid signature. An unknown option is an error, never ignored. */
export interface VerifyOptions {
  /**
   * The address that must have signed. `null` accepts every signer, and proves only that somebody signed. It must be given
   * explicitly, so that a missing setting does not switch the check off.
   */
  readonly node: string | null;
  /** The endpoint that must have been asked. Without it any answer of the signer is accepted. */
  readonly endpointId?: string;
  /**
   * The parameters of the request, as `requestHashOf` takes them: the answer needs a receipt of them. Without this option
   * receipts are ignored, and an answer to any parameters of the endpoint is accepted.
   */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Most seconds since the signing. Without it neither age nor clock is checked. */
  readonly maxAge?: number;
  /** The time at which {@link maxAge} is checked, in Unix seconds; by default that of the clock. */
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

/** Checks the options. @throws Refusal */
export function readOptions(options: VerifyOptions): Wanted {
  if (typeof options !== 'object' || options === null) throw wrongOption('there must be an object of them');
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw wrongOption(`${unknown.slice(0, 40)} is none`);
  const { node, endpointId, parameters, maxAge, now = Date.now() / 1000 } = options;
  if (node !== null && !isAddress(node)) {
    throw wrongOption('node must be an address (with the right checksum, if any), or null for any signer');
  }
  // An option that is present but undefined was probably meant to be set: it does not switch the check off.
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
