import assert from 'node:assert/strict';
import { getBytes, keccak256, solidityPackedKeccak256, verifyMessage } from 'ethers';

/** A signed answer as it came over HTTP, verified. */
export interface SignedBody {
  readonly node: string;
  readonly endpointId: string;
  readonly timestamp: number;
  readonly data?: string;
  readonly rawData?: unknown;
  readonly signature: string;
  readonly [more: string]: unknown;
}

/** Verifies an encoded answer: a `Response` (200) or the parsed body of one. Returns the body. */
export async function verifyEncoded(answer: unknown, address: string): Promise<SignedBody & { readonly data: string }> {
  const body = await bodyOf(answer);
  assert.ok(!('rawData' in body), 'an encoded answer has no rawData');
  const { data } = body;
  assert.ok(typeof data === 'string' && /^0x([0-9a-f]{2})*$/i.test(data), `data is hex: ${String(data)}`);
  verify(body, data, address);
  return { ...body, data };
}

/** Verifies a raw answer: a `Response` (200) or the parsed body of one. Returns the body. */
export async function verifyRaw(answer: unknown, address: string): Promise<SignedBody & { readonly rawData: unknown }> {
  const body = await bodyOf(answer);
  assert.ok(!('data' in body), 'a raw answer has no data');
  assert.ok('rawData' in body, 'a raw answer has rawData');
  verify(body, hashOf(stable(body.rawData)), address);
  return { ...body, rawData: body.rawData };
}

async function bodyOf(answer: unknown): Promise<SignedBody> {
  if (!(answer instanceof Response)) return answer as SignedBody;
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text);
}

function verify({ node, endpointId, timestamp, signature }: SignedBody, data: string, address: string): void {
  assert.equal(node, address);
  assert.match(endpointId, /^0x[0-9a-f]{64}$/);
  assert.ok(Number.isInteger(timestamp) && Math.abs(timestamp - Date.now() / 1000) < 3600, 'timestamp is unix seconds');
  assert.match(signature, /^0x[0-9a-f]{130}$/);
  const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]);
  assert.equal(signerOf(digest, signature), address);
}

/** Remembers what a function has said: an answer of the same second is the same, and its signature takes long to check. */
function remembering(work: (...given: string[]) => string): typeof work {
  const known = new Map<string, string>();
  return (...given) => {
    const key = given.join();
    const result = known.get(key) ?? work(...given);
    known.set(key, result);
    return result;
  };
}
const hashOf = remembering((text = '') => keccak256(Buffer.from(text)));
const signerOf = remembering((digest = '', signature = '') => verifyMessage(getBytes(digest), signature));

/** Stable stringification as the specification words it (Signature, rule 2). */
export function stable(value: unknown): string {
  if (value === undefined) return 'null';
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${stable(member)}`).join(',')}}`;
}
