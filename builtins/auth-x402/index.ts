import {
  AddressSchema,
  type ClientBuckets,
  checkAddress,
  clientKey,
  configKey,
  definePlugin,
  type Exchange,
  isHex,
  MillisecondsSchema,
  perMethod,
  Refusal,
  Slot,
  type Static,
  TokenBuckets,
  type TokenTake,
  Type,
} from '../../plugins-sdk/index.ts';

const schema = Type.Object(
  {
    network: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Chain id (EIP-155)' }),
    rpc: Type.String({ pattern: '^https?://', description: 'URL of a JSON-RPC node of that chain' }),
    token: AddressSchema,
    amount: Type.String({ pattern: '^[1-9][0-9]{0,77}$', description: 'Integer in the smallest unit of the token' }),
    recipient: AddressSchema,
    expiry: Type.Optional(MillisecondsSchema),
  },
  { additionalProperties: false },
);
type Terms = Static<typeof schema>;

const bucketWindow = configKey('server', 'rateLimit.x402.window', Type.Optional(MillisecondsSchema));
const bucketMax = configKey(
  'server',
  'rateLimit.x402.max',
  Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Payment proofs per window; default 30' }),
  ),
);

const HEADER = 'x-payment-proof';
const MAX_PROOF_TEXT = 4096;
const DEFAULT_EXPIRY = 300_000;

/** The header, parsed: who paid (by signature), with which transaction, and until when the proof holds. */
interface PaymentProof {
  readonly txHash: string;
  /** Unix seconds. */
  readonly expiresAt: number;
  readonly signature: string;
}

function isBytes(value: unknown, length: number): value is string {
  return isHex(value) && value.length === 2 + 2 * length;
}

/** @throws Refusal 401 */
function parseProof(text: string): PaymentProof {
  const invalid = (reason: string) => new Refusal(401, 'Invalid payment proof', { reason });
  if (text.length > MAX_PROOF_TEXT) throw invalid('longer than any proof');
  let proof: unknown;
  try {
    proof = JSON.parse(text);
  } catch {
    throw invalid('no JSON');
  }
  if (typeof proof !== 'object' || proof === null) throw invalid('no object');
  const { txHash, expiresAt, signature } = proof as Readonly<Record<string, unknown>>;
  if (!isBytes(txHash, 32)) throw invalid('txHash is no 32-byte hex');
  if (!isBytes(signature, 65)) throw invalid('signature is no 65-byte hex');
  if (typeof expiresAt !== 'number' || !Number.isSafeInteger(expiresAt) || expiresAt < 0) {
    throw invalid('expiresAt is no unix time');
  }
  return { txHash, expiresAt, signature };
}

function challenge(
  { amount, token, network, recipient, expiry }: Terms,
  exchange: Exchange,
  node: string,
  now: number,
): Refusal {
  const body = {
    node,
    endpointId: exchange.endpoint.id,
    amount,
    token,
    network,
    recipient,
    expiresAt: Math.floor((now + (expiry ?? DEFAULT_EXPIRY)) / 1000),
  };
  return new Refusal(402, 'Payment required', { body, failure: false });
}

/** Payment on chain: without a proof the answer is a 402 challenge that says what to pay. */
export const authX402 = definePlugin({
  name: 'auth-x402',
  budget: 30_000,
  auth: { x402: schema },
  keys: [bucketWindow, bucketMax],
  credentials: ['X-Payment-Proof'],
  check: ({ endpoints }) =>
    endpoints.flatMap(({ auth, path }) =>
      auth.flatMap(({ type, token, recipient }) =>
        type === 'x402'
          ? [
              ...checkAddress(`${path}.auth.token`, String(token)),
              ...checkAddress(`${path}.auth.recipient`, String(recipient)),
            ]
          : [],
      ),
    ),
  setup({ config, node, now, endpoints }) {
    const terms = perMethod(endpoints, 'x402', schema, (method) => method);
    const buckets: ClientBuckets = new TokenBuckets({
      max: bucketMax.in(config) ?? 30,
      window: bucketWindow.in(config) ?? 60_000,
    });
    // An endpoint may accept several payments; a request with a proof draws once, whichever of them it is for.
    const drawn = new Slot<TokenTake>('x402Draw');
    const draw = async (exchange: Exchange): Promise<TokenTake> => {
      const take = drawn.get(exchange) ?? (await buckets.take(clientKey(exchange.ip)));
      drawn.set(exchange, take);
      return take;
    };
    return {
      hooks: {
        authenticate: {
          x402: async (method, exchange) => {
            const text = exchange.headers[HEADER];
            if (text === undefined) throw challenge(terms(method), exchange, node, now());
            if (!(await draw(exchange)).allowed) {
              throw new Refusal(401, 'Too many x402 verification attempts — slow down');
            }
            parseProof(text);
            // No part of this release asks the chain: a proof of the right shape is neither accepted nor refuted.
            throw new Refusal(401, 'Payment verification unavailable', {
              reason: 'the chain checks are not built yet',
            });
          },
        },
      },
    };
  },
});
