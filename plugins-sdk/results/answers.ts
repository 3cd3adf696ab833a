import { errorForLog } from '../../kernel/refusal.ts';
import { WrongShape } from '../../kernel/stages.ts';
import type { Question, Signed, SignedParts, SignRequest } from '../../kernel/values.ts';
import { dataDigest } from '../../lib/eth/eip191.ts';
import { type Hex, isHex, isSameHex, keccak256, toBytes, toHex } from '../../lib/eth/hex.ts';
import { receiptBeside } from '../../lib/eth/statements.ts';
import { canonicalText } from '../../lib/json/json-text.ts';
import { isRecord } from '../../lib/json/value.ts';
import { AskedQuestion, note, noteOf, SignedResponse } from '../question-and-answer.ts';
import { requireSigned } from '../signing/signed.ts';

/** The endpoint and question that an answer must be for. */
export interface Wanted {
  readonly endpointId: Hex;
  /** The question, which only answers with a receipt can be checked against. */
  readonly question?: Question;
}

/** Returns the request hash that the answer's receipt must have, if it needs one. */
function requestHashOf(question: unknown): Hex | undefined {
  return AskedQuestion.is(question) ? question.requestHash : undefined;
}

/** The signers whose answers are accepted, and the clock. */
export interface Vouchers {
  readonly signers: readonly string[];
  /** Returns epoch milliseconds. */
  now(): number;
}

/** The facts of a signed answer, for logs and records. */
export interface SignedFacts {
  readonly endpointId: Hex;
  /** The request hash that its receipt signs; `undefined` without a receipt. */
  readonly requestHash: Hex | undefined;
  /** The 32-byte digest that the answer's signature signs as a personal message. */
  readonly digest: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  /** The answer's signer first, then the further signers of the same answer. */
  readonly signers: readonly Hex[];
  /** Whether it was signed for this process. Otherwise it comes from a store. */
  readonly isMadeHere: boolean;
}

/** Makes an answer that was checked when it was signed. It is for the kernel alone. */
export function madeHere(parts: SignedParts, question: Question): SignedResponse {
  const answer = SignedResponse.of(parts);
  note(answer, factsOf(parts, requestHashOf(question), true));
  return answer;
}

/**
 * Returns the facts of an answer from the pipeline, or `undefined` for any other. They are kept, so that no signature is
 * recovered twice, and none that was made here.
 */
export function signedFacts(answer: SignedResponse): SignedFacts | undefined {
  return noteOf(answer) as SignedFacts | undefined;
}

type Checked = Omit<SignedParts, 'field' | 'value' | 'signature' | 'proof'>;

function factsOf(answer: Checked, requestHash: Hex | undefined, isMadeHere: boolean): SignedFacts {
  const { endpointId, node, timestamp, data, extra } = answer;
  const digest = toHex(answer.digest ?? dataDigest(endpointId, timestamp, toBytes(data)));
  const entries = Array.isArray(extra?.signatures) ? extra.signatures : [];
  const others = entries.map((entry) => entry.node).filter((other) => other !== node);
  return { endpointId, requestHash, digest, timestamp, signers: [node, ...others], isMadeHere };
}

function ensure(condition: boolean, why: string): asserts condition {
  if (!condition) throw new WrongShape(`returned an answer ${why}`);
}

/**
 * Checks that an answer, wherever it comes from, is this service's answer to a question.
 * @throws WrongShape if it is not.
 */
export function requireAnswer(answer: SignedResponse, wanted: Wanted, vouchers: Vouchers): void {
  const { endpointId, requestHash } = signedFacts(answer) ?? check(answer, vouchers);
  ensure(endpointId === wanted.endpointId, `of another endpoint: ${endpointId}`);
  const asked = requestHashOf(wanted.question);
  ensure(
    asked === undefined || asked === requestHash,
    requestHash === undefined ? 'without a receipt' : 'whose receipt is of another request',
  );
}

function check(answer: SignedResponse, { signers, now }: Vouchers): SignedFacts {
  const members: unknown = JSON.parse(answer.json);
  ensure(isRecord(members), 'that is no object');
  const { node, endpointId, timestamp, signature, receipt, signatures } = members;
  ensure(isHex(node) && isHex(endpointId) && isHex(signature) && Number.isSafeInteger(timestamp), 'of the wrong shape');
  ensure(
    signers.some((signer) => isSameHex(signer, node)),
    `signed by ${node}, which is no signer of the service`,
  );
  ensure(Number(timestamp) >= 0 && Number(timestamp) <= Math.floor(now() / 1000), `of the future: ${timestamp}`);
  const requestHash = isRecord(receipt) && isHex(receipt.requestHash) ? receipt.requestHash : undefined;
  const extra = { receipt, signatures } as Signed['extra'];
  try {
    const request = { endpointId, timestamp: Number(timestamp), ...signedDataOf(members) };
    const stated = requestHash === undefined ? [] : [receiptBeside(request, requestHash)];
    const { dataHash, signature: second } = Object(receipt);
    if (stated.some(({ shown }) => shown.dataHash !== dataHash))
      throw new TypeError('the receipt is not of this request and this answer');
    const statements = stated.map(() => second);
    requireSigned({ node, signature, extra, statements }, { ...request, statements: stated });
    const found = factsOf({ ...request, node, extra }, requestHash, false);
    note(answer, found);
    return found;
  } catch (error) {
    throw new WrongShape(`returned an answer that cannot be verified: ${errorForLog(error, 'message')}`);
  }
}

/** Names of members that modes add in front of an answer's. */
export const ADDED = ['requestId', 'status', 'pollUrl', 'done'];

/** Names of an answer's members that are not the signed value. */
const BESIDE: ReadonlySet<string> = new Set([
  ...['node', 'endpointId', 'timestamp', 'signature', 'receipt', 'signatures', 'proof'],
]);

/** Returns the signed data of an answer: bytes that it shows, or the hash of any other JSON's canonical text. */
function signedDataOf(members: Readonly<Record<string, unknown>>): Pick<SignRequest, 'data' | 'isHash'> {
  const [field, other] = ['data', 'rawData'].filter((name) => Object.hasOwn(members, name));
  // These would come after a mode's own members, and override them.
  ensure(!ADDED.some((name) => Object.hasOwn(members, name)), `with a member that only modes add: ${ADDED.join(', ')}`);
  // Only one of the two was signed, and clients might read the other.
  ensure(other === undefined, 'with both data and rawData');
  const shown = field ?? Object.keys(members).find((name) => !BESIDE.has(name)) ?? '';
  const value = members[shown];
  if (field !== 'rawData' && isHex(value)) return { data: value, isHash: false };
  return { data: toHex(keccak256(Buffer.from(canonicalText(value).json))), isHash: true };
}
