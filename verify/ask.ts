import { areElementary, decodeAbi } from '../lib/eth/decode-abi.ts';
import { AskError, wrongOption } from './ask-error.ts';
import { type Hex, isAddress, isHex } from './ethereum.ts';
import { type AnswerRequest, endpointUrl, fetchAnswer } from './fetch-answer.ts';
import type { VerifyOptions } from './options.ts';
import { type Verification, verifyResponse } from './response.ts';

const DEFAULT_MAX_AGE = 180;
const DEFAULT_TIMEOUT_MS = 5000;
/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** A request to an operator. An unknown option is an error, never ignored. */
export interface AskOptions<T extends string = 'int256'> {
  /** The base of the service, such as `https://api.example.com`. */
  readonly url: string;
  readonly endpointId: string;
  /** Parameters of the request; none by default. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  /** The address that must have signed, from a source that you trust. */
  readonly signer: string;
  /** API key, for endpoints that need an `X-Api-Key`. */
  readonly key?: string | undefined;
  /** Whether the answer needs a receipt of `parameters`. These must then be all that receipts cover, defaults included. */
  readonly receipt?: boolean | undefined;
  /** The types of the data, such as `uint8,string`, or `json` for an answer with `rawData`; `int256` by default. */
  readonly type?: T | undefined;
  /** Most seconds since the signing; 180 by default. */
  readonly maxAge?: number | undefined;
  /** Milliseconds for the whole answer; 5000 by default. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Used in place of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** The type of a decoded value; several ABI types become an array. */
export type ValueOf<T extends string> = T extends 'json'
  ? unknown
  : T extends `${string},${string}`
    ? readonly (bigint | boolean | string)[]
    : T extends `int${string}` | `uint${string}`
      ? bigint
      : T extends 'bool'
        ? boolean
        : string;

/** A checked answer. `calldataFor` takes it as it is, for `SignedDataQuorum`. */
export interface AskedAnswer<T extends string = 'int256'> {
  readonly url: string;
  readonly value: ValueOf<T>;
  readonly signer: Hex;
  readonly endpointId: Hex;
  /** Unix seconds at signing. */
  readonly timestamp: number;
  /** The signed data: ABI-encoded values, or the hash of the JSON. */
  readonly data: Hex;
  readonly signature: Hex;
  /** Present with `receipt: true`. */
  readonly receiptSignature?: Hex;
}

const OPTIONS = 'url endpointId parameters signer key receipt type maxAge timeout signal fetch'.split(' ');

/**
 * Asks one operator, and checks who signed its answer, for which endpoint, and when. The endpoint's mode must be `sync`.
 *
 * @throws AskError with a `reason` for programs; the reason of `signal` when it aborts.
 */
export async function ask<T extends string = 'int256'>(options: AskOptions<T>): Promise<AskedAnswer<T>> {
  requireOptions(options, OPTIONS);
  const { url, endpointId, parameters = {}, key, signer, type = 'int256', signal } = options;
  const timeout = options.timeout ?? DEFAULT_TIMEOUT_MS;
  requireAsk(options, timeout, type);
  const request: AnswerRequest = { url, endpointId, parameters, key, fetch: options.fetch ?? globalThis.fetch };
  const wanted: VerifyOptions = {
    ...{ node: signer, endpointId, maxAge: options.maxAge ?? DEFAULT_MAX_AGE },
    ...(options.receipt === true && { parameters }),
  };
  // Checked before the request, so that wrong options do not look like the fault of an answer.
  const trial = verifyResponse({}, wanted);
  if (!trial.ok && trial.reason === 'options') throw new AskError('options', trial.message);
  const answer = await withDeadline(timeout, signal, (inner) => fetchAnswer(request, inner));
  const checked = verifyResponse(answer, wanted);
  if (!checked.ok) throw new AskError(checked.reason, checked.message);
  const { timestamp, signedData: data, signature, receiptSignature } = checked;
  return {
    ...{
      url,
      value: decodedValue(checked, type) as ValueOf<T>,
      signer: checked.signer,
      endpointId: checked.endpointId,
    },
    ...{ timestamp, data, signature, ...(receiptSignature && { receiptSignature }) },
  };
}

/** Checks the names of options. @throws AskError for an unknown one. */
export function requireOptions(options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw wrongOption('there must be an object of them');
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw wrongOption(`${unknown.slice(0, 40)} is none; there are ${known.join(', ')}`);
}

function requireAsk(options: AskOptions<string>, timeout: number, type: string): void {
  const { url, endpointId, signer, parameters, receipt = false } = options;
  if (!isHex(endpointId, 32)) throw wrongOption('endpointId must be 0x and 64 hex digits');
  if (!isAddress(signer)) throw wrongOption('signer must be an address (with the right checksum, if any)');
  if (type !== 'json' && !areElementary(type))
    throw wrongOption('type must be elementary ABI types, such as int256 or uint8,string, or json');
  // Any other value was meant to switch the check on or off, and must not do the opposite.
  if (typeof receipt !== 'boolean') throw wrongOption('receipt must be true or false');
  if (!isWritable(parameters)) throw wrongOption('parameters must hold JSON values');
  if (!(timeout > 0 && timeout <= LONGEST_MS)) throw wrongOption('timeout must be a number of milliseconds, above 0');
  endpointUrl(url, endpointId);
}

function isWritable(parameters: unknown): boolean {
  try {
    JSON.stringify(parameters);
    return true;
  } catch {
    return false;
  }
}

type Verified = Exclude<Verification, { readonly ok: false }>;

function decodedValue(answer: Verified, type: string): unknown {
  if (type === 'json') {
    if (answer.kind === 'raw') return JSON.parse(answer.json);
    throw new AskError('value', 'the answer is encoded: give as type what its data holds, such as int256');
  }
  if (answer.kind === 'raw') throw new AskError('value', 'the answer is rawData: give json as type');
  const values = decodeAbi(answer.data, type)?.map(({ type: each, value }) => typed(each, value));
  if (values === undefined) throw new AskError('value', `the data is no ABI encoding of ${type}`);
  return type.includes(',') ? values : values[0];
}

function typed(type: string, value: string): bigint | boolean | string {
  if (/^u?int/.test(type)) return BigInt(value);
  if (type === 'bool') return value === 'true';
  return type === 'string' ? String(JSON.parse(value)) : value;
}

/** Waits for the work until the timeout passes or the signal aborts, even if the work ignores its own signal. */
function withDeadline<R>(
  timeout: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const inner = new AbortController();
  return new Promise<R>((resolve, reject) => {
    const end = (reason: unknown) => {
      reject(reason);
      inner.abort(reason);
    };
    const stop = () => end(outer?.reason);
    if (outer?.aborted) return stop();
    const timer = setTimeout(() => end(new AskError('timeout', `no whole answer came within ${timeout} ms`)), timeout);
    outer?.addEventListener('abort', stop, { once: true });
    const failed = (error: unknown) => reject(error instanceof AskError ? error : unreachable(error));
    work(inner.signal)
      .then(resolve, failed)
      .finally(() => {
        clearTimeout(timer);
        outer?.removeEventListener('abort', stop);
      });
  });
}

/** Makes the error of a failed `fetch`, with the message of its cause: its own message seldom says more than that it failed. */
function unreachable(error: unknown): AskError {
  const cause = error instanceof Error ? error.cause : undefined;
  const text = cause instanceof Error ? cause.message : error instanceof Error ? error.message : String(error);
  return new AskError('unreachable', `the operator cannot be reached: ${text}`);
}
