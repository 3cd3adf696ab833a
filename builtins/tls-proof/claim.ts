import { recoverTextSigner } from '../../lib/eth/eip191.ts';
import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { isRecord } from '../../lib/json/value.ts';
import { type Hex, isHex, toHex } from '../../plugins-sdk/index.ts';
import { type Address, keccak256 } from '../../plugins-sdk/signing.ts';

/** What an attestor vouches for, in the names of Reclaim's protocol. */
type Claim = {
  readonly provider: 'http';
  /** JSON text: the request and the patterns. */
  readonly parameters: string;
  /** Text of whoever made the claim and of the attestor, such as the values of named groups. */
  readonly context: string;
  /** Who had the claim made: the gateway. */
  readonly owner: Address;
  /** Unix seconds. */
  readonly timestampS: number;
  readonly epoch: 1;
  /** keccak256 of provider, parameters and context. */
  readonly identifier: Hex;
};

/** The `proof` of a signed answer. */
export type ReclaimProof = {
  readonly claim: Claim;
  readonly signatures: { readonly attestorAddress: Address; readonly claimSignature: Hex };
};

export interface ResponseMatch {
  readonly type: 'regex';
  readonly value: string;
}

/** The request that a claim must be about: all of it that a claim shows. */
export interface ClaimedRequest {
  readonly url: string;
  readonly method: string;
  /** Empty where there is none. */
  readonly body: string;
  readonly responseMatches: readonly ResponseMatch[];
}

export interface Expectation {
  readonly request: ClaimedRequest;
  /** Lower-case addresses, one of which must have signed; without it any attestor will do. */
  readonly attestors?: ReadonlySet<string> | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Why there is no proof. The message is fit for a log: it quotes nothing that was sent or received. */
export class NoProof extends Error {
  override readonly name = 'NoProof';
}

/** Seconds that a claim's timestamp may be off, either way. */
const TOLERANCE_SECONDS = 600;

type Members = Readonly<Record<string, unknown>>;

/**
 * Checks what a gateway answered: that it is a claim about just this request, made now and signed by the attestor it names.
 *
 * @param answer parsed JSON.
 * @returns the members of a proof and nothing else of the answer.
 * @throws NoProof
 */
export function checkProof(answer: unknown, { request, attestors, now }: Expectation): ReclaimProof {
  const { claim: claimed, signatures: given } = membersOf(answer, 'the answer');
  const claim = claimOf(claimed);
  const signatures = signaturesOf(given);
  const distance = Math.abs(now / 1000 - claim.timestampS);
  ensure(distance <= TOLERANCE_SECONDS, 'the timestamp of the claim is not within 10 minutes');
  const attestor = signatures.attestorAddress.toLowerCase();
  ensure(attestors === undefined || attestors.has(attestor), 'the attestor is none of settings.proof.attestors');
  ensure(claim.identifier === identifierOf(claim), 'the identifier is not that of the claim');
  ensure(signerOf(claim, signatures.claimSignature) === attestor, 'the claim is not signed by its attestor');
  ensure(isAbout(claim.parameters, request), 'the claim is about another request');
  return { claim, signatures };
}

function ensure(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new NoProof(reason);
}

function membersOf(value: unknown, name: string): Members {
  ensure(isRecord(value), `${name} is no object`);
  return value;
}

function claimOf(value: unknown): Claim {
  const { provider, parameters, context, owner, timestampS, epoch, identifier } = membersOf(value, 'claim');
  ensure(provider === 'http', 'claim.provider is not http');
  ensure(isText(parameters), 'claim.parameters is no text');
  ensure(isText(context), 'claim.context is no text');
  ensure(isAddress(owner), 'claim.owner is no address');
  ensure(isTime(timestampS), 'claim.timestampS is no unix time');
  ensure(epoch === 1, 'claim.epoch is not 1');
  ensure(isBytes32(identifier), 'claim.identifier is no 32-byte hex');
  return { provider, parameters, context, owner, timestampS, epoch, identifier };
}

function signaturesOf(value: unknown): ReclaimProof['signatures'] {
  const { attestorAddress, claimSignature } = membersOf(value, 'signatures');
  ensure(isAddress(attestorAddress), 'signatures.attestorAddress is no address');
  ensure(isHex(claimSignature) && claimSignature.length === 132, 'signatures.claimSignature is no 65-byte hex');
  return { attestorAddress, claimSignature };
}

/** A lone surrogate has no UTF-8 form: the hash would be that of another text. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function identifierOf({ provider, parameters, context }: Claim): Hex {
  return toHex(keccak256(Buffer.from(`${provider}\n${parameters}\n${context}`, 'utf8')));
}

/** In lower case. */
function signerOf({ identifier, owner, timestampS, epoch }: Claim, signature: Hex): string {
  try {
    return recoverTextSigner(`${identifier}\n${owner.toLowerCase()}\n${timestampS}\n${epoch}`, signature).toLowerCase();
  } catch (error) {
    throw new NoProof(error instanceof Error ? error.message : 'the signature cannot be recovered');
  }
}

/** Whether the JSON text is the request, no member more or less, and nothing of the response was hidden from the attestor. */
function isAbout(parameters: string, request: ClaimedRequest): boolean {
  const expected = { ...request, responseRedactions: [] };
  try {
    return (
      canonicalJson(JSON.parse(parameters)) === canonicalJson(expected) &&
      countStrings(parameters) === countStrings(JSON.stringify(expected))
    );
  } catch {
    return false;
  }
}

/** A repeated key is one string more; JSON.parse would take the last and other readers another. */
function countStrings(json: string): number {
  return json.match(/"[^"\\]*(?:\\.[^"\\]*)*"/g)?.length ?? 0;
}
