import type { PaymentRequirements } from '@x402/core/types';
import { Compile } from 'typebox/compile';
import { isBytes32, isSameHex } from '../../lib/eth/hex.ts';
import { isHex, type Static, Type } from '../../plugins-sdk/index.ts';
import type { Address } from '../../plugins-sdk/signing.ts';
import { memberAt } from '../shared/described.ts';

/** `TransferWithAuthorization` of EIP-3009, numbers as decimal text. */
export interface Authorization {
  readonly from: Address;
  readonly to: Address;
  readonly value: string;
  /** Unix seconds. */
  readonly validAfter: string;
  readonly validBefore: string;
  readonly nonce: string;
}

/** A payment that fits one of the offered requirements, as far as can be told without asking anybody. */
export interface Payment {
  readonly requirements: PaymentRequirements;
  readonly authorization: Authorization;
  /** By an account, or what a wallet contract (ERC-1271) or one yet to be deployed (ERC-6492) takes for one. */
  readonly signature: string;
  /** Epoch milliseconds. */
  readonly endsAt: number;
  /** As the client has sent them; nothing of them is checked. */
  readonly extensions: unknown;
}

/** What tells an authorisation from all others. */
export function idOf({ requirements, authorization }: Payment): string {
  return [requirements.network, requirements.asset, authorization.from, authorization.nonce].join(' ');
}

/** Why a payment is not taken: a code of the protocol. */
export class PaymentFault extends Error {}

/** Characters of the header: base64 of a payload with what was offered, whose signature may be that of a wallet contract. */
const LONGEST_HEADER = 12_288;
/** Seconds that a payment must be valid for still, as facilitators ask. */
const LEAST_SECONDS = 6;
/** Seconds ahead that a payment may be valid: it is remembered that long. */
const MOST_SECONDS = 90_000;

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const UINT256 = /^(?:0|[1-9][0-9]{0,77})$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const invalid = () => new PaymentFault('invalid_payload');

const Members = Type.Record(Type.String(), Type.Unknown());
const offer = { scheme: Type.String(), network: Type.String(), asset: Type.String(), amount: Type.String() };
const PayloadSchema = Type.Object({
  x402Version: Type.Literal(2),
  resource: Type.Optional(Type.Union([Members, Type.Null()])),
  accepted: Type.Object({ ...offer, payTo: Type.String() }),
  payload: Members,
  extensions: Type.Optional(Type.Union([Members, Type.Null()])),
});
/** What a client sends, as far as anything of it is looked at. */
type Sent = Static<typeof PayloadSchema>;
const payloadCheck = Compile(PayloadSchema);

/**
 * Reads the header `PAYMENT-SIGNATURE`: base64 of a `PaymentPayload` of version 2.
 * @throws PaymentFault
 */
export function decodePayment(text: string): Sent {
  if (text.length > LONGEST_HEADER || !BASE64.test(text)) throw invalid();
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64')));
  } catch {
    throw invalid();
  }
  if (payloadCheck.Check(payload)) return payload;
  throw memberAt(payload, 'x402Version') === 2 ? invalid() : new PaymentFault('invalid_x402_version');
}

/**
 * Checks what a client has sent against what was offered.
 * @param now epoch milliseconds.
 * @throws PaymentFault
 */
export function matchPayment(
  { accepted, payload, extensions }: Sent,
  offers: readonly PaymentRequirements[],
  now: number,
): Payment {
  const requirements = requirementsFor(accepted, offers);
  if ('permit2Authorization' in payload) throw new PaymentFault('unsupported_payload_type');
  const { signature } = payload;
  const authorization = authorizationIn(payload.authorization);
  if (authorization === undefined || !isHex(signature) || signature === '0x') throw invalid();
  const { to, value, validAfter, validBefore } = authorization;
  if (!isSameHex(to, requirements.payTo)) throw new PaymentFault('invalid_exact_evm_payload_recipient_mismatch');
  if (value !== requirements.amount) throw new PaymentFault('invalid_exact_evm_payload_authorization_value');
  const seconds = BigInt(Math.floor(now / 1000));
  if (BigInt(validAfter) > seconds) throw new PaymentFault('invalid_exact_evm_payload_authorization_valid_after');
  const left = BigInt(validBefore) - seconds;
  if (left < LEAST_SECONDS || left > MOST_SECONDS)
    throw new PaymentFault('invalid_exact_evm_payload_authorization_valid_before');
  return { requirements, authorization, signature, endsAt: Number(validBefore) * 1000, extensions };
}

function requirementsFor(accepted: Sent['accepted'], offers: readonly PaymentRequirements[]): PaymentRequirements {
  if (accepted.scheme !== 'exact') throw new PaymentFault('unsupported_scheme');
  const there = offers.filter(({ network }) => network === accepted.network);
  if (there.length === 0) throw new PaymentFault('invalid_network');
  const found = there.find(
    ({ asset, amount, payTo }) =>
      isSameHex(asset, accepted.asset) && amount === accepted.amount && isSameHex(payTo, accepted.payTo),
  );
  if (found === undefined) throw new PaymentFault('invalid_payment_requirements');
  return found;
}

/** Nothing but the members that are signed. */
function authorizationIn(value: unknown): Authorization | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { from, to, value: amount, validAfter, validBefore, nonce } = value as Readonly<Record<string, unknown>>;
  if (!isAddressText(from) || !isAddressText(to) || !isBytes32(nonce)) return undefined;
  if (!isUint256(amount) || !isUint256(validAfter) || !isUint256(validBefore)) return undefined;
  return { from, to, value: amount, validAfter, validBefore, nonce };
}

/** Of any case: what a wallet says of the checksum changes nothing that is signed. */
function isAddressText(value: unknown): value is Address {
  return typeof value === 'string' && ADDRESS.test(value);
}

function isUint256(value: unknown): value is string {
  return typeof value === 'string' && UINT256.test(value) && BigInt(value) >> 256n === 0n;
}
