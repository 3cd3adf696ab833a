import { dataDigest } from '../../lib/eth/eip191.ts';
import { type Hex, isHex, toBytes, toHex } from '../../lib/eth/hex.ts';
import { keccak256 } from '../../lib/eth/keccak.ts';
import { receiptBeside } from '../../lib/eth/statements.ts';
import { canonicalText } from '../../lib/json/json-text.ts';
import { isRecord } from '../../lib/json/value.ts';
import { isRefusal, type Question, type Signed, type SignedParts, type SignRequest, WrongShape } from '../kernel.ts';
import { AskedQuestion } from '../question.ts';
import { note, noteOf, SignedResponse } from '../signed-response.ts';
import { requireSigned } from '../signing/signed.ts';

/** Which answer is wanted. */
export interface Wanted {
  readonly endpointId: Hex;
  /** Whose answer it must be, on endpoints whose answers tell by a receipt. */
  readonly question?: Question;
}

/** The content of an answer's receipt, if it needs one. */
function requestHashOf(question: unknown): Hex | undefined {
  return AskedQuestion.is(question) ? question.requestHash : undefined;
}

/** Whose answers pass, and by which clock. */
export interface Vouchers {
  readonly signers: readonly string[];
  /** Epoch milliseconds. */
  now(): number;
}

/** What was signed, and the answer's other signatures beside it: so each is recovered from once at most, and never where it was made here. */
interface Known extends Pick<SignedParts, 'endpointId' | 'node' | 'timestamp' | 'data' | 'digest' | 'beside'> {
  readonly requestHash: Hex | undefined;
  readonly isMadeHere: boolean;
  /** Made when they are first asked for. */
  facts?: SignedFacts;
}

const knownOf = (answer: SignedResponse) => noteOf(answer) as Known | undefined;

/** For the kernel alone: an answer that was checked when it was signed. */
export function madeHere(parts: SignedParts, question: Question): SignedResponse {
  const { endpointId, node, timestamp, data, digest, beside } = parts;
  const requestHash = requestHashOf(question);
  const answer = SignedResponse.of(parts);
  note(answer, { endpointId, requestHash, node, timestamp, data, digest, beside, isMadeHere: true });
  return answer;
}

/** A signed statement and its signer. */
export interface SignedFacts extends Pick<Known, 'endpointId' | 'requestHash'> {
  /** What the answer's signature is a personal message of. */
  readonly digest: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  /** The signer of the answer, then those who signed the same beside it. */
  readonly signers: readonly Hex[];
  /** Whether this process had it signed; otherwise it was kept elsewhere. */
  readonly isMadeHere: boolean;
}

/** What is known of an answer of the pipeline; of others nothing. */
export function signedFacts(answer: SignedResponse): SignedFacts | undefined {
  const known = knownOf(answer);
  if (known === undefined) return undefined;
  known.facts ??= factsOf(known);
  return known.facts;
}

function factsOf(known: Known): SignedFacts {
  const { endpointId, requestHash, node, timestamp, data, beside, isMadeHere } = known;
  const digest = toHex(known.digest ?? dataDigest(endpointId, timestamp, toBytes(data)));
  const entries = Array.isArray(beside?.signatures) ? beside.signatures : [];
  const others = entries.map((entry) => entry.node).filter((other) => other !== node);
  return { endpointId, requestHash, digest, timestamp, signers: [node, ...others], isMadeHere };
}

function ensure(condition: boolean, why: string): asserts condition {
  if (!condition) throw new WrongShape(`returned an answer ${why}`);
}

/**
 * Throws WrongShape unless the value is this service's answer to the question.
 * @throws WrongShape unless it is an answer of the service to what is asked, wherever it comes from.
 */
export function requireAnswer(answer: SignedResponse, wanted: Wanted, vouchers: Vouchers): void {
  const { endpointId, requestHash } = knownOf(answer) ?? check(answer, vouchers);
  ensure(endpointId === wanted.endpointId, `of another endpoint: ${endpointId}`);
  const asked = requestHashOf(wanted.question);
  ensure(
    asked === undefined || asked === requestHash,
    requestHash === undefined ? 'without a receipt' : 'whose receipt is of another request',
  );
}

function check(answer: SignedResponse, { signers, now }: Vouchers): Known {
  const members: unknown = JSON.parse(answer.json);
  ensure(isRecord(members), 'that is no object');
  const { node, endpointId, timestamp, signature, receipt, signatures } = members;
  ensure(isHex(node) && isHex(endpointId) && isHex(signature) && Number.isSafeInteger(timestamp), 'of the wrong shape');
  const by = node.toLowerCase();
  ensure(
    signers.some((signer) => signer.toLowerCase() === by),
    `signed by ${node}, which is no signer of the service`,
  );
  ensure(Number(timestamp) >= 0 && Number(timestamp) <= Math.floor(now() / 1000), `of the future: ${timestamp}`);
  const requestHash = isRecord(receipt) && isHex(receipt.requestHash) ? receipt.requestHash : undefined;
  const beside = { receipt, signatures } as Signed['beside'];
  try {
    const request = { endpointId, timestamp: Number(timestamp), ...signedDataOf(members) };
    const stated = requestHash === undefined ? undefined : receiptBeside(request, requestHash);
    const { dataHash, signature: second } = Object(receipt);
    if (stated !== undefined && dataHash !== stated.shown.dataHash)
      throw new TypeError('the receipt is not of this request and this answer');
    const statements = stated && { statements: [second] };
    requireSigned({ node, signature, beside, ...statements }, { ...request, ...(stated && { statements: [stated] }) });
    const found = { ...request, requestHash, node, beside, isMadeHere: false };
    note(answer, found);
    return found;
  } catch (error) {
    throw new WrongShape(`returned an answer that cannot be verified: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return String((isRefusal(error) ? error.reason : undefined) ?? (error instanceof Error ? error.message : error));
}

/** Members that modes add in front. */
export const ADDED = ['requestId', 'status', 'pollUrl', 'done'];

/** Members of an answer that do not show what was signed. */
const BESIDE: ReadonlySet<string> = new Set([
  ...['node', 'endpointId', 'timestamp', 'signature', 'receipt', 'signatures', 'proof'],
]);

/** Bytes are signed as they are shown, and of any other JSON the hash of its canonical text. */
function signedDataOf(members: Readonly<Record<string, unknown>>): Pick<SignRequest, 'data' | 'isHash'> {
  const [field, other] = ['data', 'rawData'].filter((name) => Object.hasOwn(members, name));
  // They would stand behind a mode's own members, and win.
  ensure(!ADDED.some((name) => Object.hasOwn(members, name)), `with a member that only modes add: ${ADDED.join(', ')}`);
  // Only one of them was signed, and clients may read the other.
  ensure(other === undefined, 'with both data and rawData');
  const shown = field ?? Object.keys(members).find((name) => !BESIDE.has(name)) ?? '';
  const value = members[shown];
  if (field !== 'rawData' && isHex(value)) return { data: value, isHash: false };
  return { data: toHex(keccak256(Buffer.from(canonicalText(value).json))), isHash: true };
}
