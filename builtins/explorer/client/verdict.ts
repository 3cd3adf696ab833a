import { useMemo } from 'preact/hooks';
import { decodeAbi } from '../../../lib/eth/decode-abi.ts';
import { jsonIn } from '../../../lib/json/value.ts';
import { isAddress, recoverSigner } from '../../../verify/ethereum.ts';
import { type Reason, type Verification, verifyResponse } from '../../../verify/index.ts';
import { scaled, withFactors } from './factor.ts';
import { humanOf } from './human.ts';
import type { Page, Pin, Sent } from './page.ts';
import type { Asked } from './request.ts';

/** What the page says of an answer. */
export interface Verdict {
  /** `unpinned` where all is right, by an address for which the service alone speaks. */
  readonly state: 'none' | 'good' | 'unpinned' | 'bad';
  readonly headline: string;
  readonly detail?: string;
  /** The recovered address; a meaningless one if the answer was altered. Absent where the signature leads to none. */
  readonly signer?: string | undefined;
  /** Whether the pinned address itself cannot be one. */
  readonly isBadPin?: boolean;
  readonly verified?: Extract<Verification, { readonly ok: true }>;
}

const HEADLINES: Record<Reason, string> = {
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

/**
 * Checks an answer as it stands in the page.
 * @param text JSON, which a person may have changed.
 */
function judge(text: string, { address, isOwnChoice }: Pin, { endpointId, parameters }: Asked): Verdict {
  const isBadPin = !isAddress(address);
  const wanted = { node: isBadPin ? null : address, endpointId, ...(parameters && { parameters }) };
  let signer: string | undefined;
  const verified = verifyResponse(jsonIn(text), wanted, (digest, signature) => {
    const found = recoverSigner(digest, signature);
    if ('address' in found) signer ??= found.address;
    return found;
  });
  if (isBadPin) {
    const detail = 'Pin the address that you expect to have signed.';
    return { state: 'bad', headline: 'Nothing to compare with', detail, signer, isBadPin };
  }
  if (!verified.ok) {
    const { reason, message } = verified;
    const detail = `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
    return { state: 'bad', headline: HEADLINES[reason], detail, signer };
  }
  const receipt = parameters === undefined ? '' : ', and its receipt is of the parameters that were sent';
  const detail = `Nothing that is signed was changed since${receipt}.`;
  const seen = { detail, signer: verified.signer, verified };
  if (isOwnChoice) return { state: 'good', headline: 'Signed by the pinned address', ...seen };
  return { state: 'unpinned', headline: 'Signed by the address that the service gives', ...seen };
}

/** The verdict on an answer, judged again only where the text or the pin is another. */
export function useVerdict({ pin }: Page, { outcome, asked, text = '' }: Partial<Sent> = {}): Verdict {
  const judged = () =>
    outcome && asked ? judge(text, pin, asked) : ({ state: 'none', headline: 'No answer yet' } as const);
  return useMemo(judged, [outcome, asked, text, pin]);
}

/** A signed value, with its type and factor as the name. */
interface Value {
  readonly name: string;
  readonly human?: string | undefined;
  readonly exact: string;
}

/** The values of a good answer, where they are encoded in a way that is known. */
export function valuesOf({ verified }: Verdict, { types = '', times, paths = '' }: Asked): Value[] {
  if (verified?.kind !== 'encoded') return [];
  const kinds = scaled(types, times);
  const names = withFactors(types, times);
  const places = paths.split(',');
  return (decodeAbi(verified.data, types) ?? []).map(({ type, value: exact }, i) => {
    // A path may have commas of its own: then its parts belong to no certain value.
    const path = places.length === kinds.length ? places[i] : undefined;
    return { name: names[i] ?? type, human: humanOf(exact, kinds[i] ?? { type }, path?.trim()), exact };
  });
}
