import { createPrivateKey } from 'node:crypto';
import { pemText } from '../../lib/text/pem.ts';
import type { FacilitatorTerms } from './terms.ts';

type Key = NonNullable<FacilitatorTerms['auth']>;

/** Whether a secret is one that the platform issues. It is an Ed25519 key of 64 bytes in base64, or a PEM with an EC key on P-256. */
export function isCdpSecret(secret: string): boolean {
  try {
    return isPem(secret)
      ? createPrivateKey(pemText(secret)).asymmetricKeyDetails?.namedCurve === 'prime256v1'
      : /^[A-Za-z0-9+/]{86}==$/.test(secret);
  } catch {
    return false;
  }
}

/** The header with a token that is good for one method, host and path, for two minutes. */
export async function cdpHeaders(
  { keyId, keySecret }: Key,
  method: string,
  url: string,
): Promise<{ Authorization: string }> {
  const { generateJwt } = await import('@coinbase/cdp-sdk/auth');
  const { host, pathname } = new URL(url);
  const token = await generateJwt({
    apiKeyId: keyId,
    // The library reads no other PEM.
    apiKeySecret: isPem(keySecret)
      ? createPrivateKey(pemText(keySecret)).export({ type: 'pkcs8', format: 'pem' }).toString()
      : keySecret,
    requestMethod: method,
    requestHost: host,
    requestPath: pathname,
  });
  return { Authorization: `Bearer ${token}` };
}

function isPem(secret: string): boolean {
  return secret.includes('-----BEGIN');
}
