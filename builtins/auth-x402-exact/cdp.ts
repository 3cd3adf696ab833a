/** Makes the tokens (JWT) that the Coinbase Developer Platform requires with each request to its facilitator. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { pemText } from '../../lib/text.ts';

/** Seconds for which a token is valid. */
const VALID_SECONDS = 120;

/**
 * Reads a secret as the platform issues it: a PEM with an EC key on P-256, or base64 of 64 bytes, the seed of an Ed25519 key
 * and its public key.
 * @throws Error whose message may quote the secret.
 */
export function cdpKey(secret: string): KeyObject {
  if (secret.includes('-----BEGIN')) {
    const key = createPrivateKey(pemText(secret));
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
    throw new Error('the key is not on P-256');
  }
  const bytes = Buffer.from(secret, 'base64');
  const [d, x] = [bytes.toString('base64url', 0, 32), bytes.toString('base64url', 32)];
  const key = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  if (createPublicKey(key).export({ format: 'jwk' }).x !== x) throw new Error('the halves of the key do not match');
  return key;
}

/** Makes the header with a token for one method, host and path. */
export function cdpHeaders(keyId: string, key: KeyObject, method: string, url: string): { Authorization: string } {
  const { host, pathname } = new URL(url);
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now, nbf: now, exp: now + VALID_SECONDS };
  const claims = { sub: keyId, iss: 'cdp', uris: [`${method} ${host}${pathname}`], ...times };
  const isEd25519 = key.asymmetricKeyType === 'ed25519';
  const nonce = randomBytes(16).toString('hex');
  const header = { alg: isEd25519 ? 'EdDSA' : 'ES256', kid: keyId, typ: 'JWT', nonce };
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const signature = sign(isEd25519 ? null : 'sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return { Authorization: `Bearer ${signed}.${signature.toString('base64url')}` };
}
