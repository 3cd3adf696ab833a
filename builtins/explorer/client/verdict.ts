import { canonicalJson } from '../../../lib/json/canonical-json.ts';
import { digestOf, hashOfText, isHex, recoverSigner } from '../../../verify/ethereum.ts';
import { type Reason, type Verification, verifyResponse } from '../../../verify/index.ts';
import type { Asked } from './form.ts';

/** What is to be said about an answer. */
export interface Verdict {
  readonly state: 'good' | 'bad';
  readonly headline: string;
  readonly detail: string;
  /** The recovered address; a meaningless one if the answer was altered. Absent where the signature leads to none. */
  readonly signer?: string;
  /** Whether the pinned address itself cannot be one. */
  readonly badPin: boolean;
  readonly verified?: Extract<Verification, { readonly ok: true }>;
}

const headlines: Record<Reason, string> = {
  options: 'Nothing to compare with',
  malformed: 'Not a signed answer',
  'raw-data': 'Not a signed answer',
  signature: 'Not a valid signature',
  signer: 'The signature does not match',
  node: 'Signed by another address',
  endpoint: 'The answer of another endpoint',
  'too-old': 'Too old',
  future: 'From the future',
  'receipt-missing': 'No receipt',
  receipt: 'The receipt does not match',
  request: 'The answer to another request',
};

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/**
 * Checks an answer as it stands in the page.
 * @param text JSON, which a person may have changed.
 * @param pin the address that must have signed.
 */
export function judge(text: string, pin: string, { endpointId, parameters }: Asked): Verdict {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { state: 'bad', headline: 'Not a signed answer', detail: `It is not JSON: ${why}`, badPin: false };
  }
  const verified = verifyResponse(answer, { node: pin, endpointId, ...(parameters && { parameters }) });
  if (verified.ok) {
    const receipt = parameters === undefined ? '' : ', and its receipt is of the parameters that were sent';
    const detail = `Nothing that is signed was changed since${receipt}.`;
    const headline = 'Signed by the pinned address';
    return { state: 'good', headline, detail, signer: verified.signer, badPin: false, verified };
  }
  const signer = recovered(answer);
  const badPin = verified.reason === 'options';
  return {
    state: 'bad',
    headline: headlines[verified.reason],
    detail: badPin ? 'Pin the address that you expect to have signed.' : sentence(verified.message),
    ...(signer === undefined ? {} : { signer }),
    badPin,
  };
}

/** The address that the signature of an answer belongs to, whoever the answer says has signed. */
function recovered(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const { endpointId, timestamp, data, rawData, signature }: Readonly<Record<string, unknown>> = { ...answer };
  if (!isHex(endpointId, 32) || !isHex(signature, 65)) return undefined;
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp) || timestamp < 0) return undefined;
  const signed = rawData === undefined ? data : hashOf(rawData);
  if (!isHex(signed)) return undefined;
  const found = recoverSigner(digestOf(endpointId, timestamp, signed), signature);
  return 'address' in found ? found.address : undefined;
}

function hashOf(rawData: unknown): string | undefined {
  try {
    return hashOfText(canonicalJson(rawData));
  } catch {
    return undefined;
  }
}
