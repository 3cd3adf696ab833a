import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { faults, type Upstream } from './upstream.ts';

/** What {@link identityProvider} issues tokens for. */
export const AUDIENCE = 'prices';

/** An identity provider, whose keys an upstream publishes at `/jwks`. */
export async function identityProvider(upstream: Upstream) {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one' };
  upstream.on('/jwks', faults.json({ keys: [jwk] }));
  const issuer = `${upstream.url}/`;
  return {
    method: { type: 'jwt', jwks: `${upstream.url}/jwks`, issuer, audience: AUDIENCE, algorithms: ['ES256'] },
    /** @param claims besides or in place of those of a good token; what is undefined is left out. */
    token: (claims: Readonly<Record<string, unknown>> = {}, kid = 'one') =>
      new SignJWT({ iss: issuer, aud: AUDIENCE, sub: 'ada', exp: Math.floor(Date.now() / 1000) + 600, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(privateKey),
    jwk,
  };
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
