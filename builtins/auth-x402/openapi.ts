import { type OpenApiPart, objectSchema, refTo, textSchema } from '../../plugins-sdk/openapi.ts';
import { tooManyAttempts } from '../shared/attempts.ts';
import { UNAVAILABLE } from '../shared/payments.ts';
import { INVALID_PROOF } from './payment.ts';
import { termsIn } from './terms.ts';

const schema = (name: string) => refTo('schemas', name);

const refusals = [
  'Payment proof expired',
  'Payment proof valid for too long',
  'Payment proof signature mismatch',
  'Payment already used',
  'Payment not found',
  'Payment does not match',
  'Payment too old',
  UNAVAILABLE,
  tooManyAttempts().message,
];

const schemas = {
  PaymentChallenge: objectSchema(
    'What to pay, to whom, and until when',
    {
      node: schema('Address'),
      endpointId: schema('Bytes32'),
      amount: textSchema('^[1-9][0-9]*$', 'In the smallest unit of the token'),
      token: { ...schema('Address'), description: 'ERC-20 token; the zero address is the native asset' },
      network: { type: 'integer', minimum: 1, description: 'Chain ID (EIP-155)' },
      recipient: schema('Address'),
      expiresAt: schema('Timestamp'),
      error: { const: INVALID_PROOF, description: 'X-Payment-Proof was sent, and is no PaymentProof' },
    },
    ['error'],
  ),
  PaymentProof: objectSchema('The content of X-Payment-Proof', {
    txHash: textSchema('^0x[0-9a-fA-F]{64}$', 'The transaction with which was paid; each counts once'),
    expiresAt: { ...schema('Timestamp'), description: 'Unix time in seconds, 10 minutes ahead at most' },
    signature: textSchema(
      '^0x[0-9a-fA-F]{130}$',
      'EIP-191 personal signature, by the account that sent the transaction, of the 32-byte digest ' +
        '`keccak256(abi.encodePacked(address node, bytes32 endpointId, uint64 expiresAt))`',
    ),
  }),
};

const scheme = {
  type: 'apiKey',
  in: 'header',
  name: 'X-Payment-Proof',
  description:
    'Without it the answer is 402 and says what to pay. Pay, then send the same request with a PaymentProof as JSON',
};

/** What the OpenAPI document says of payments on chain. Of the operator's terms it shows the price alone. */
export const openApiPart: OpenApiPart = {
  schemas,
  auth: {
    x402: {
      scheme,
      responses: {
        401: { description: 'The proof of payment was refused', errors: refusals },
        402: { description: 'Pay first: the body says what', schema: schema('PaymentChallenge') },
      },
      title: 'payment (x402)',
      hints: [
        'Send the request without a proof to see what to pay, and pay from your wallet.',
        'With the same account sign keccak256(node ‖ endpointId ‖ uint64 expiresAt) as EIP-191 says, and put the proof here as JSON. A payment counts once.',
      ],
      prices: (method) => termsIn({ auth: [method] }).map(({ amount, token, network }) => ({ amount, token, network })),
      example: { txHash: '0x…', expiresAt: 1700000000, signature: '0x…' },
    },
  },
};
