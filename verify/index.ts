/**
 * Verifies signed answers of the service, off chain: for browsers and Node, without anything of the service itself.
 */
import { CanonicalJsonError, canonicalJson } from '../plugins-sdk/canonical-json.ts';
import { digestOf, type Hex, hashOfText, isAddress, isHex, recoverSigner } from './ethereum.ts';

export type { Hex } from './ethereum.ts';

/** Seconds that a signer's clock may be ahead of the one that {@link VerifyOptions.maxAge} is checked by. */
export const CLOCK_SKEW = 60;

/** What an answer must be, beside properly signed. A name that is not one of these is an error, never ignored. */
export interface VerifyOptions {
  /**
   * The address that must have signed. `null` accepts every signer, which proves no more than that somebody signed: it has
   * to be said, so that a setting that is missing does not switch the check off.
   */
  readonly node: string | null;
  /** The endpoint that must have been asked. Without it any answer of the signer will do. */
  readonly endpointId?: string;
  /** Seconds since the signing that are too many when exceeded. Without it neither age nor clock is looked at. */
  readonly maxAge?: number;
  /** The time that {@link maxAge} counts from: Unix seconds. By default that of the clock. */
  readonly now?: number;
}

/** Why an answer was not accepted. */
export type Reason =
  /** The options are no {@link VerifyOptions}: a mistake of the caller. */
  | 'options'
  /** No signed answer: an error, a pending request, a missing field or one of the wrong shape. */
  | 'malformed'
  /** `rawData` has no canonical JSON text, so nothing can have been signed. */
  | 'raw-data'
  /** `signature` is none that a contract would accept. */
  | 'signature'
  /** Somebody else than the `node` of the answer signed, or something else was signed than what the answer says. */
  | 'signer'
  /** Properly signed, by another address than the one asked for. */
  | 'node'
  /** Another endpoint's answer. */
  | 'endpoint'
  /** Older than `maxAge`. */
  | 'too-old'
  /** From further ahead than {@link CLOCK_SKEW}. */
  | 'future';

export interface Refused {
  readonly ok: false;
  readonly reason: Reason;
  /** One sentence for a person, which may show parts of the answer. */
  readonly message: string;
}

interface Signed {
  readonly ok: true;
  /** Who signed, with the checksum of EIP-55. */
  readonly signer: Hex;
  /** Whether a signer was asked for. */
  readonly pinned: boolean;
  /** What was signed as an EIP-191 personal message: keccak256(encodePacked(endpointId, timestamp, signedData)). */
  readonly digest: Hex;
  readonly endpointId: Hex;
  /** Unix seconds at signing. */
  readonly timestamp: number;
  /** The `bytes data` of the digest, and of a delivery to a contract. */
  readonly signedData: Hex;
}

/** An encoded answer. */
export interface VerifiedEncoded extends Signed {
  readonly kind: 'encoded';
  /** ABI-encoded values; the same as `signedData`. */
  readonly data: Hex;
}

/** A raw answer; its `signedData` is the hash of `json`. */
export interface VerifiedRaw extends Signed {
  readonly kind: 'raw';
  /** The text that was signed: the canonical JSON of `rawData`. Parse this rather than trust an object that may change. */
  readonly json: string;
}

export type Verification = VerifiedEncoded | VerifiedRaw | Refused;

/**
 * Checks that an answer was signed, by whom, and what was. Takes the parsed body of a sync response, of an SSE frame, and
 * the record of a complete async request; fields beside the signed ones (`proof`, `done`, `requestId`, `status`) are
 * not signed, and not looked at.
 *
 * Never throws, whatever it is given, and makes no requests.
 *
 * What it cannot promise: that the upstream said so (the signer could lie); which parameters the request had (they are not
 * signed: pin endpoints whose answer does not depend on a stranger's parameters, or send the request yourself);
 * that nobody else has used the answer before (that is for the contract that it is delivered to, or for you to remember);
 * and without `maxAge` that it is of today.
 */
export function verifyResponse(response: unknown, options: VerifyOptions): Verification {
  try {
    return verify(response, readOptions(options));
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.reason, message: error.message };
    return { ok: false, reason: 'malformed', message: 'the response cannot be read' };
  }
}

/** Ends a check from wherever it fails; never leaves this module. */
class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.reason = reason;
  }
}

interface Wanted {
  readonly node: Hex | null;
  readonly endpointId: Hex | undefined;
  readonly age: { readonly max: number; readonly now: number } | undefined;
}

interface Answer {
  readonly node: Hex;
  readonly endpointId: Hex;
  readonly timestamp: number;
  readonly content: Pick<VerifiedEncoded, 'kind' | 'data'> | Pick<VerifiedRaw, 'kind' | 'json'>;
  readonly signature: Hex;
}

function verify(response: unknown, wanted: Wanted): Verification {
  const { node, endpointId, timestamp, content, signature } = readAnswer(response);
  const signedData = content.kind === 'encoded' ? content.data : hashOfText(content.json);
  const digest = digestOf(endpointId, timestamp, signedData);
  const recovered = recoverSigner(digest, signature);
  if ('problem' in recovered) throw new Refusal('signature', `the signature is not valid: ${recovered.problem}`);
  const signer = recovered.address;
  if (!isSame(signer, node)) {
    throw new Refusal('signer', `the signature is not by the node ${node}, or something in the response was changed`);
  }
  const signed: Signed = { ok: true, signer, pinned: wanted.node !== null, digest, endpointId, timestamp, signedData };
  requireWanted(signed, wanted);
  return { ...signed, ...content };
}

function requireWanted({ signer, endpointId, timestamp }: Signed, wanted: Wanted): void {
  if (wanted.node !== null && !isSame(signer, wanted.node)) {
    throw new Refusal('node', `the response is signed by ${signer}, not by ${wanted.node}`);
  }
  if (wanted.endpointId !== undefined && !isSame(endpointId, wanted.endpointId)) {
    throw new Refusal('endpoint', `the response is of endpoint ${endpointId}, not of ${wanted.endpointId}`);
  }
  if (wanted.age === undefined) return;
  const { max, now } = wanted.age;
  const age = now - timestamp;
  if (age > max) throw new Refusal('too-old', `the response is ${Math.floor(age)} seconds old, more than ${max}`);
  if (-age > CLOCK_SKEW) throw new Refusal('future', `the response is of ${Math.floor(-age)} seconds in the future`);
}

/** Only own fields count, and each is read once: what was checked is what is returned. */
function readAnswer(response: unknown): Answer {
  if (typeof response !== 'object' || response === null || Array.isArray(response)) {
    throw malformed('the response is no object');
  }
  const field = (name: string): unknown => (Object.hasOwn(response, name) ? Reflect.get(response, name) : undefined);
  const node = field('node');
  const endpointId = field('endpointId');
  const timestamp = field('timestamp');
  const signature = field('signature');
  if (node === undefined && signature === undefined) throw malformed(unsigned(field('error'), field('status')));
  if (!isHex(node, 20)) throw malformed('node must be an address: 0x and 40 hex digits');
  if (!isHex(endpointId, 32)) throw malformed('endpointId must be 0x and 64 hex digits');
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp) || timestamp < 0) {
    throw malformed('timestamp must be a number of whole Unix seconds');
  }
  if (!isHex(signature, 65)) throw malformed('signature must be 65 bytes: 0x and 130 hex digits');
  return { node, endpointId, timestamp, content: readContent(field('data'), field('rawData')), signature };
}

function unsigned(error: unknown, status: unknown): string {
  if (typeof error === 'string') return `the response is an error, not a signed answer: ${error.slice(0, 200)}`;
  if (status === 'pending' || status === 'processing') return `the request is still ${status}: there is no answer yet`;
  return 'the response has no node and no signature';
}

function readContent(data: unknown, rawData: unknown): Answer['content'] {
  if (data !== undefined && rawData !== undefined) throw malformed('the response has both data and rawData');
  if (data === undefined && rawData === undefined) throw malformed('the response has neither data nor rawData');
  if (rawData !== undefined) return { kind: 'raw', json: textOf(rawData) };
  if (!isHex(data)) throw malformed('data must be 0x and an even number of hex digits');
  return { kind: 'encoded', data };
}

function textOf(rawData: unknown): string {
  try {
    return canonicalJson(rawData);
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error;
    throw new Refusal('raw-data', `rawData has no canonical JSON text: ${error.message}`);
  }
}

const OPTIONS = ['node', 'endpointId', 'maxAge', 'now'];

function readOptions(options: VerifyOptions): Wanted {
  if (typeof options !== 'object' || options === null) throw wrongOption('there must be an object of them');
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) throw wrongOption(`${unknown.slice(0, 40)} is none`);
  const { node, endpointId, maxAge, now = Date.now() / 1000 } = options;
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
    age: maxAge === undefined ? undefined : { max: maxAge, now },
  };
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isSame(one: Hex, other: Hex): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

function malformed(message: string): Refusal {
  return new Refusal('malformed', message);
}

function wrongOption(message: string): Refusal {
  return new Refusal('options', `wrong options: ${message}`);
}
