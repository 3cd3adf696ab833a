/**
 * Lets in clients with a token of your identity provider: `Authorization: Bearer <JWT>`, signed by a key of its JWKS. The claim
 * `sub` becomes the client's name, in the log and for other plugins.
 *
 * Keys are fetched when a token needs one, without a proxy, and kept for ten minutes. For an unknown key they are fetched
 * again, at most every 30 seconds. A token needs `exp` and `sub`. The log shows jose's code for a token's fault, never the
 * token.
 *
 * Needs `npm install jose@6` beside the config file.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./jwt-auth.ts
 * apis:
 *   - auth:
 *       type: jwt
 *       jwks: https://id.example.com/.well-known/jwks.json
 *       issuer: https://id.example.com/
 *       audience: prices
 *       algorithms: [ES256]
 * ```
 */

import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { clientName, definePlugin, perMethod, Refusal, type StageFn, Type } from 'signed-data-proxy/plugins-sdk';

const method = Type.Object(
  {
    jwks: Type.String({ pattern: '^https?://[^@]+$', description: 'Where the keys of the issuer are' }),
    issuer: Type.String({ minLength: 1, description: 'What `iss` has to be' }),
    audience: Type.String({ minLength: 1, description: 'What `aud` has to be, or to hold' }),
    // No algorithm with a shared secret: the keys published at `jwks` must not be able to sign.
    algorithms: Type.Array(Type.String({ pattern: '^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA)$' }), { minItems: 1 }),
  },
  { additionalProperties: false },
);
const headers = { 'WWW-Authenticate': 'Bearer' };
/** jose's codes of faults that are not the token's: the keys cannot be fetched or used. */
const OURS = ['ERR_JOSE_GENERIC', 'ERR_JWKS_INVALID', 'ERR_JWKS_TIMEOUT'];

function refuse(error: unknown): never {
  const reason = error instanceof errors.JOSEError ? error.code : undefined;
  if (reason === undefined || OURS.includes(reason))
    throw new Refusal(503, 'Tokens cannot be checked', { reason: String(error) });
  throw new Refusal(401, reason === 'ERR_JWT_EXPIRED' ? 'Token expired' : 'Invalid token', { headers, reason });
}

export default definePlugin({
  name: 'jwt-auth',
  budget: 6000, // jose gives up after five seconds
  auth: { jwt: method },
  credentials: ['Authorization'],
  setup({ endpoints }) {
    const verifier = perMethod(endpoints, 'jwt', method, ({ jwks, ...required }) => {
      const keys = createRemoteJWKSet(new URL(jwks));
      return (token: string) => jwtVerify(token, keys, { ...required, requiredClaims: ['exp', 'sub'] });
    });
    const jwt: StageFn<'authenticate'> = async (configured, exchange): Promise<true> => {
      const [, token] = /^Bearer +(\S+)$/i.exec(exchange.headers.authorization ?? '') ?? [];
      if (token === undefined) throw new Refusal(401, 'Missing bearer token', { headers });
      const { payload } = await verifier(configured)(token).catch(refuse);
      clientName.set(exchange, String(payload.sub));
      return true;
    };
    return { hooks: { authenticate: { jwt } } };
  },
});
