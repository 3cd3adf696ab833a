import { getAddress, getBytes, keccak256, solidityPackedKeccak256, toUtf8Bytes, verifyMessage } from 'ethers';

export interface SignedAnswer {
  readonly node: string;
  readonly endpointId: string;
  /** Unix seconds: how old an answer may be is for its user to decide. */
  readonly timestamp: number;
  readonly data?: string;
  readonly rawData?: unknown;
  readonly signature: string;
}

/** @throws Error unless this very signer signed this very answer for this very endpoint. */
export function verifyAnswer(answer: SignedAnswer, node: string, endpointId: string): void {
  const data = 'rawData' in answer ? keccak256(toUtf8Bytes(stable(answer.rawData))) : answer.data;
  if (answer.endpointId !== endpointId.toLowerCase()) throw new Error('the answer is for another endpoint');
  const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, answer.timestamp, data]);
  const signer = verifyMessage(getBytes(digest), answer.signature);
  if (signer !== getAddress(node)) throw new Error(`the answer is signed by ${signer}, not by ${node}`);
}

/** JSON text with the keys of every object in order: what is signed of a raw answer. */
function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${stable(member)}`).join(',')}}`;
}
