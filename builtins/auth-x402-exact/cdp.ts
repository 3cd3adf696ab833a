/** The tokens that the Coinbase Developer Platform wants with each request to its facilitator. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { pemText } from '../../lib/text/pem.ts';
import type { FacilitatorTerms } from './terms.ts';

type Key = NonNullable<FacilitatorTerms['auth']>;

/** Seconds for which a token is good. */
const VALID_SECONDS = 120;

/** Whether a secret is one that the platform issues: 64 bytes in base64 (Ed25519), or a PEM with an EC key on P-256. */
export function isCdpSecret(secret: string): boolean {
  try {
    return isPem(secret)
      ? createPrivateKey(pemText(secret)).asymmetricKeyDetails?.namedCurve === 'prime256v1'
      : /^[A-Za-z0-9+/]{86}==$/.test(secret);
  } catch {
    return false;
  }
}

/** The header with a token for one method, host and path. @throws Error that may quote the key. */
export function cdpHeaders({ keyId, keySecret }: Key, method: string, url: string): { Authorization: string } {
  const { host, pathname } = new URL(url);
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now, nbf: now, exp: now + VALID_SECONDS };
  const claims = { sub: keyId, iss: 'cdp', uris: [`${method} ${host}${pathname}`], ...times };
  const key = isPem(keySecret) ? createPrivateKey(pemText(keySecret)) : ed25519Key(keySecret);
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const nonce = randomBytes(16).toString('hex');
  const header = { alg: isEd25519 ? 'EdDSA' : 'ES256', kid: keyId, typ: 'JWT', nonce };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const signature = sign(isEd25519 ? null : 'sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return { Authorization: `Bearer ${signed}.${signature.toString('base64url')}` };
}

/** @param secret the seed and the public key. @throws Error where one is not the other's. */
function ed25519Key(secret: string): KeyObject {
  const bytes = Buffer.from(secret, 'base64');
  const [d, x] = [bytes.toString('base64url', 0, 32), bytes.toString('base64url', 32)];
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  if (createPublicKey(key).export({ format: 'jwk' }).x !== x) throw new Error('the halves of the key do not match');
  return key;
}

function isPem(secret: string): boolean {
  return secret.includes('-----BEGIN');
}
