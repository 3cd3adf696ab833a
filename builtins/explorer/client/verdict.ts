import { useMemo } from 'preact/hooks';
import { decodeAbi } from '../../../lib/eth/decode-abi.ts';
import { jsonIn } from '../../../lib/json/value.ts';
import { isAddress, recoverSigner } from '../../../verify/ethereum.ts';
import { type Reason, type Verification, verifyResponse } from '../../../verify/index.ts';
import { scaled, withFactors } from './factor.ts';
import { humanOf } from './human.ts';
import type { Page, Pin, Sent } from './page.ts';
import type { Asked } from './request.ts';

/** The page's verdict on an answer. */
export interface Verdict {
  /** The state; `unpinned` means valid, but signed by an address that only the service states. */
  readonly state: 'none' | 'good' | 'unpinned' | 'bad';
  readonly headline: string;
  readonly detail?: string;
  /** The recovered address; a meaningless one if the answer was altered. Absent if the signature recovers to none. */
  readonly signer?: string | undefined;
  /** Whether the pinned text is no address. */
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
 * Checks an answer's text on the page.
 * @param text JSON, which a person may have edited.
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

/** Returns the verdict on an answer; checks again only if text, pin or request changed. */
export function useVerdict({ pin }: Page, { outcome, asked, text = '' }: Partial<Sent> = {}): Verdict {
  const judged = () =>
    outcome && asked ? judge(text, pin, asked) : ({ state: 'none', headline: 'No answer yet' } as const);
  return useMemo(judged, [outcome, asked, text, pin]);
}

/** Returns the values of a valid answer, if its encoding is known. The name of one is its type with the factor. */
export function valuesOf({ verified }: Verdict, { types = '', times, paths = '' }: Asked) {
  if (verified?.kind !== 'encoded') return [];
  const kinds = scaled(types, times);
  const names = withFactors(types, times);
  const places = paths.split(',');
  return (decodeAbi(verified.data, types) ?? []).map(({ type, value: exact }, i) => {
    // A path may have commas of its own. Then it is not known which part belongs to which value.
    const path = places.length === kinds.length ? places[i] : undefined;
    return { name: names[i] ?? type, human: humanOf(exact, kinds[i] ?? { type }, path?.trim()), exact };
  });
}
