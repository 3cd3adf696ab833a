import { isRecord } from '../../kernel/plain-json.ts';
import { isRefusal, type Question, type Signed, type SignedParts, type SignRequest, WrongShape } from '../kernel.ts';
import { type Hex, isHex, toHex } from '../lib/eth/hex.ts';
import { keccak256 } from '../lib/eth/keccak.ts';
import { canonicalText } from '../lib/json/canonical-text.ts';
import { privateNotes } from '../lib/objects/private-notes.ts';
import { SignedResponse } from '../signed-response.ts';
import { requireSigned } from '../signing/signed.ts';

/** Which answer is wanted. */
export interface Wanted extends Pick<Question, 'requestHash'> {
  readonly endpointId: Hex;
}

/** Whose answers pass, and by which clock. */
export interface Vouchers {
  readonly signers: readonly string[];
  /** Epoch milliseconds. */
  now(): number;
}

/** What is known of answers, so that their signatures are recovered from once at most, and never from those made here. */
const known = privateNotes<Wanted>();

/** For the kernel alone: an answer that was checked when it was signed. */
export function madeHere(parts: SignedParts, { requestHash }: Pick<Question, 'requestHash'>): SignedResponse {
  return known.set(SignedResponse.of(parts), { endpointId: parts.endpointId, requestHash });
}

function ensure(condition: boolean, why: string): asserts condition {
  if (!condition) throw new WrongShape(`returned an answer ${why}`);
}

/** @throws WrongShape unless it is an answer of the service to what is asked, wherever it comes from. */
export function requireAnswer(answer: SignedResponse, wanted: Wanted, vouchers: Vouchers): void {
  const { endpointId, requestHash } = known.get(answer) ?? check(answer, vouchers);
  ensure(endpointId === wanted.endpointId, `of another endpoint: ${endpointId}`);
  ensure(
    wanted.requestHash === undefined || wanted.requestHash === requestHash,
    requestHash === undefined ? 'without a receipt' : 'whose receipt is of another request',
  );
}

function check(answer: SignedResponse, { signers, now }: Vouchers): Wanted {
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
  try {
    const request = { endpointId, timestamp: Number(timestamp), ...signedDataOf(members) };
    requireSigned({ node, signature, beside: { receipt, signatures } as Signed['beside'] }, request, requestHash);
  } catch (error) {
    throw new WrongShape(`returned an answer that cannot be verified: ${reasonOf(error)}`);
  }
  const found = { endpointId, requestHash };
  known.set(answer, found);
  return found;
}

function reasonOf(error: unknown): string {
  return String((isRefusal(error) ? error.reason : undefined) ?? (error instanceof Error ? error.message : error));
}

/** Members that modes add in front. */
export const ADDED = ['requestId', 'status', 'done'];

/** Members of an answer that do not show what was signed. */
const BESIDE: ReadonlySet<string> = new Set([
  ...['node', 'endpointId', 'timestamp', 'signature', 'receipt', 'signatures', 'proof'],
]);

/** Bytes are signed as they are shown, and of any other JSON the hash of its canonical text. */
function signedDataOf(members: Readonly<Record<string, unknown>>): Pick<SignRequest, 'data' | 'isHash'> {
  const [field, other] = ['data', 'rawData'].filter((name) => Object.hasOwn(members, name));
  // Standing behind those of a mode, they would win.
  ensure(!ADDED.some((name) => Object.hasOwn(members, name)), `with a member that only modes add: ${ADDED.join(', ')}`);
  // One of them alone was signed, and clients may read the other.
  ensure(other === undefined, 'with both data and rawData');
  const shown = field ?? Object.keys(members).find((name) => !BESIDE.has(name)) ?? '';
  const value = members[shown];
  if (field !== 'rawData' && isHex(value)) return { data: value, isHash: false };
  return { data: toHex(keccak256(Buffer.from(canonicalText(value).json))), isHash: true };
}
