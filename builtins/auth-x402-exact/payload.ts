/** Reads and checks the header `PAYMENT-SIGNATURE`: its shape, offer, amount, recipient and times, and the payer's signature. */
import { isUtf8 } from 'node:buffer';
import { Check } from 'typebox/value';
import { type Address, isSameHex } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { ethers } from '../../lib/process/packages.ts';
import { type Static, Type } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import { CLOCK_MARGIN_MS } from '../shared/payment-mark.ts';
import { type Offer, type Quote, refusal, type Way } from './offer.ts';

/** Upper or lower case: the letters' case (EIP-55) is not part of what is signed. */
const address = Type.Unsafe<Address>(Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }));
const decimal = Type.String({ pattern: '^(?:0|[1-9][0-9]{0,77})$' });
const uint256 = Type.Refine(decimal, (text) => BigInt(text) >> 256n === 0n);

const SignedSchema = Type.Object({
  /** Signature of an account, or of a wallet contract that is deployed (ERC-1271) or yet to be (ERC-6492). */
  signature: Type.String({ pattern: '^0x(?:[0-9a-fA-F]{2})+$' }),
  /** `TransferWithAuthorization` of EIP-3009, times in Unix seconds. */
  authorization: Type.Object({
    ...{ from: address, to: address, value: uint256, validAfter: uint256, validBefore: uint256 },
    nonce: Type.String({ pattern: '^0x[0-9a-fA-F]{64}$' }),
  }),
});

type Signed = Readonly<Static<typeof SignedSchema>>;

/** A signed authorisation for a token, whatever is offered. */
export interface Authorised extends Signed {
  readonly requirements: { readonly network: string; readonly asset: string };
}

/** A payment in one of the offered ways, as far as it can be checked without the chain. */
export interface Payment extends Signed, Way {
  /** The offer of the request that it pays. */
  readonly offer: Offer;
  /** End of the authorisation, in epoch milliseconds. */
  readonly endsAt: number;
}

const Members = Type.Object({});
const text = Type.String();
const PayloadSchema = Type.Object({
  x402Version: Type.Literal(2),
  resource: Type.Optional(Type.Union([Members, Type.Null()])),
  accepted: Type.Object({ scheme: text, network: text, asset: text, amount: text, payTo: text }),
  payload: Members,
  extensions: Type.Optional(Type.Union([Members, Type.Null()])),
});
/** The members of a client's payload that the service reads. */
export type Sent = Static<typeof PayloadSchema>;

/** Most characters of the header: base64 of a payload that repeats the offer, with a wallet contract's long signature. */
const LONGEST_HEADER = 12_288;
/** Least seconds that a payment must remain valid, as facilitators require. */
const LEAST_SECONDS = 6;
/** Seconds by which the clock of a wallet, which counts `maxTimeoutSeconds` from its own time, may be ahead. */
const CLOCK_MARGIN_SECONDS = CLOCK_MARGIN_MS / 1000;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const invalid = (offer: Offer) => refusal(offer, 'invalid_payload');

/** Returns what identifies an authorisation: network, token, payer and nonce. */
export function idOf({ requirements, authorization }: Authorised): string {
  return [requirements.network, requirements.asset, authorization.from, authorization.nonce].join(' ');
}

/** Returns the authorisation that a client has sent; undefined for anything else. */
export function authorisedIn({ accepted: requirements, payload }: Sent): Authorised | undefined {
  return Check(SignedSchema, payload) ? { ...payload, requirements } : undefined;
}

/**
 * Checks what a client has sent against the offer.
 * @param now epoch milliseconds.
 * @throws Refusal 402
 */
export function paymentIn({ accepted, payload }: Sent, { offer, ways }: Quote, now: number): Payment {
  const way = wayFor(accepted, ways, offer);
  if ('permit2Authorization' in payload) throw refusal(offer, 'unsupported_payload_type');
  if (!Check(SignedSchema, payload)) throw invalid(offer);
  const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
  const misfit = (what: string) => refusal(offer, `invalid_exact_evm_payload_${what}`);
  if (!isSameHex(to, way.requirements.payTo)) throw misfit('recipient_mismatch');
  if (value !== way.requirements.amount) throw misfit('authorization_value');
  const seconds = BigInt(Math.floor(now / 1000));
  if (BigInt(validAfter) > seconds) throw misfit('authorization_valid_after');
  const left = BigInt(validBefore) - seconds;
  const most = way.requirements.maxTimeoutSeconds + CLOCK_MARGIN_SECONDS;
  if (left < LEAST_SECONDS || left > most) throw misfit('authorization_valid_before');
  // Only the members that are signed.
  const authorization = { from, to, value, validAfter, validBefore, nonce };
  const { signature } = payload;
  return { ...way, offer, authorization, signature, endsAt: Number(validBefore) * 1000 };
}

/** Decodes the header. @returns a `PaymentPayload` of version 2. @throws Refusal 402 */
export function sentIn(text: string, offer: Offer): Sent {
  const bytes = Buffer.from(text, 'base64');
  const isText = text.length <= LONGEST_HEADER && BASE64.test(text) && isUtf8(bytes);
  const payload = isText ? jsonIn(bytes.toString()) : undefined;
  if (payload === undefined) throw invalid(offer);
  if (Check(PayloadSchema, payload)) return payload;
  throw memberAt(payload, 'x402Version') === 2 ? invalid(offer) : refusal(offer, 'invalid_x402_version');
}

function wayFor(accepted: Sent['accepted'], ways: readonly Way[], offer: Offer): Way {
  if (accepted.scheme !== 'exact') throw refusal(offer, 'unsupported_scheme');
  const there = ways.filter(({ requirements: { network } }) => network === accepted.network);
  if (there.length === 0) throw refusal(offer, 'invalid_network');
  const found = there.find(
    ({ requirements: { asset, amount, payTo } }) =>
      isSameHex(asset, accepted.asset) && amount === accepted.amount && isSameHex(payTo, accepted.payTo),
  );
  if (found === undefined) throw refusal(offer, 'invalid_payment_requirements');
  return found;
}

/** The EIP-712 types of what is signed (EIP-3009). */
const uints = { value: 'uint256', validAfter: 'uint256', validBefore: 'uint256' };
const members = Object.entries({ from: 'address', to: 'address', ...uints, nonce: 'bytes32' });
const types = { TransferWithAuthorization: members.map(([name, type]) => ({ name, type })) };

/** Whether the payer signed with its own key; `false` for a wallet contract's signature, which only the chain can check. */
export function isSignedByPayer({ requirements, authorization, signature }: Payment): boolean {
  const { network, asset, extra } = requirements;
  const { name, version } = extra as { readonly name: string; readonly version: string };
  const domain = { name, version, chainId: BigInt(network.slice('eip155:'.length)), verifyingContract: asset };
  try {
    return isSameHex(ethers().verifyTypedData(domain, types, authorization, signature), authorization.from);
  } catch {
    return false;
  }
}
