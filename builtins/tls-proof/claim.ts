import { recoverTextSigner } from '../../lib/eth/eip191.ts';
import { isAddress, isBytes32 } from '../../lib/eth/hex.ts';
import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { isRecord } from '../../lib/json/value.ts';
import { type Hex, isHex, toHex } from '../../plugins-sdk/index.ts';
import { keccak256 } from '../../plugins-sdk/signing.ts';

/** The members of a request that its claim must show. */
export interface ClaimedRequest {
  readonly url: string;
  readonly method: string;
  /** The body; empty if there is none. */
  readonly body: string;
  readonly responseMatches: readonly { readonly type: 'regex'; readonly value: string }[];
}

export interface Expectation {
  readonly request: ClaimedRequest;
  /** Lower-case addresses, one of which must have signed; absent: any attestor will do. */
  readonly attestors?: ReadonlySet<string> | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** There is no valid proof. The message may be logged: it quotes nothing that was sent or received. */
export class NoProof extends Error {
  override readonly name = 'NoProof';
}

/** Most seconds by which a claim's timestamp may differ from now, in either direction. */
const TOLERANCE_SECONDS = 600;

type Members = Readonly<Record<string, unknown>>;

/**
 * Checks that a gateway's answer is a claim about exactly this request, recent and signed by the attestor that it names.
 *
 * @param answer parsed JSON.
 * @returns the members of a proof, without any others of the answer.
 * @throws NoProof
 */
export function checkProof(answer: unknown, { request, attestors, now }: Expectation) {
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

/** The claim that an attestor signs, with the names of Reclaim's protocol. */
type Claim = ReturnType<typeof claimOf>;

/** Returns the members of a claim: `parameters` is JSON, `context` any text, and `owner` the gateway for which it was made. */
function claimOf(value: unknown) {
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

function signaturesOf(value: unknown) {
  const { attestorAddress, claimSignature } = membersOf(value, 'signatures');
  ensure(isAddress(attestorAddress), 'signatures.attestorAddress is no address');
  ensure(isHex(claimSignature) && claimSignature.length === 132, 'signatures.claimSignature is no 65-byte hex');
  return { attestorAddress, claimSignature };
}

/** Whether a value is a text with a UTF-8 form. A lone surrogate has none, and the hash would be that of another text. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function identifierOf({ provider, parameters, context }: Claim): Hex {
  return toHex(keccak256(Buffer.from(`${provider}\n${parameters}\n${context}`, 'utf8')));
}

/** Recovers the signer of a claim, in lower case. @throws NoProof */
function signerOf({ identifier, owner, timestampS, epoch }: Claim, signature: Hex): string {
  try {
    return recoverTextSigner(`${identifier}\n${owner.toLowerCase()}\n${timestampS}\n${epoch}`, signature).toLowerCase();
  } catch (error) {
    throw new NoProof(error instanceof Error ? error.message : 'the signature cannot be recovered');
  }
}

/** Whether a JSON text is exactly the request, and nothing of the response was hidden from the attestor. */
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

/** Counts the strings of a JSON text. A repeated key is one more: JSON.parse uses the last one, other parsers another. */
function countStrings(json: string): number {
  return json.match(/"[^"\\]*(?:\\.[^"\\]*)*"/g)?.length ?? 0;
}
