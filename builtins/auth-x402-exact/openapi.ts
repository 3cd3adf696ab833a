/** What the OpenAPI document says of standard payments. */
import { noStore, type OpenApiPart, objectSchema, refTo, textSchema } from '../../plugins-sdk/openapi.ts';
import { tooManyAttempts } from '../shared/attempts.ts';
import { UNAVAILABLE } from '../shared/payments.ts';
import { paymentInfo } from './dollars.ts';
import { FORMER_SIGNER, NO_ROOM, OTHER_REQUEST, TOO_LONG } from './kept-answers.ts';
import { noPrice } from './offer.ts';
import { acceptsOf, boundsOf, termsIn } from './terms.ts';

const text = { type: 'string' };
const address = refTo('schemas', 'Address');
const open = { type: 'object', additionalProperties: true };
const ways = { type: 'array', minItems: 1, items: refTo('schemas', 'ExactPaymentRequirements') };
const url = { ...text, description: 'May be a path only' };

const schemas = {
  ExactPaymentRequired: objectSchema(
    'What to pay, and why: `PaymentRequired` of x402, version 2',
    {
      x402Version: { const: 2 },
      error: { ...text, description: 'Why this is no answer, in words or as a code of the protocol' },
      reason: { const: 'payment_in_progress', description: 'Another request has this payment: send it again' },
      resource: { ...objectSchema('What is paid for', { url }), ...open },
      extensions: { ...open, description: 'What else is offered, by the name of the extension' },
      accepts: { ...ways, description: 'Any one of them is enough' },
    },
    ['reason', 'extensions'],
  ),
  ExactPaymentRequirements: objectSchema('One way to pay', {
    scheme: { const: 'exact' },
    network: textSchema('^eip155:[1-9][0-9]*$', 'Chain as CAIP-2 names it'),
    asset: { ...address, description: 'ERC-20 token with EIP-3009' },
    amount: textSchema('^[1-9][0-9]*$', 'In the smallest unit of the token'),
    payTo: address,
    maxTimeoutSeconds: { type: 'integer', minimum: 1, description: 'For which to make the authorisation valid' },
    extra: objectSchema('The EIP-712 domain of the token', { name: text, version: text }),
  }),
};

const seconds = { type: 'integer', minimum: 0 };
const headers = {
  ...noStore,
  'PAYMENT-REQUIRED': {
    description: 'The body as base64 (`PaymentRequired` of x402, version 2)',
    required: true,
    schema: textSchema('^[A-Za-z0-9+/]+={0,2}$', 'JSON as base64'),
  },
  'Retry-After': { description: 'Seconds to wait, where another request has this payment', schema: seconds },
};

const scheme = {
  type: 'apiKey',
  in: 'header',
  name: 'PAYMENT-SIGNATURE',
  description:
    'x402, version 2, scheme `exact` on EVM: base64 of a `PaymentPayload` that authorises one of the transfers that a 402 offers. It is verified first, and settled only once there is a signed answer, which carries PAYMENT-RESPONSE',
};

export const openApiPart: OpenApiPart = {
  schemas,
  operation: (endpoint) =>
    acceptsOf(endpoint).some(({ accept }) => typeof accept.amount !== 'string')
      ? { responses: { 503: { errors: [noPrice('<name>').message] } } }
      : undefined,
  auth: {
    'x402-exact': {
      scheme,
      responses: {
        400: { errors: ['Invalid payment identifier'] },
        409: {
          description: 'What was bought by this payment identifier is not given',
          errors: [OTHER_REQUEST, TOO_LONG, NO_ROOM, FORMER_SIGNER],
        },
        401: {
          description: 'Whether the payment is good could not be found out',
          errors: [UNAVAILABLE, tooManyAttempts().message],
        },
        402: {
          description:
            'Pay by PAYMENT-SIGNATURE, or pay otherwise: nothing was taken. After a settlement that failed, PAYMENT-RESPONSE says how',
          schema: refTo('schemas', 'ExactPaymentRequired'),
          headers,
        },
      },
      operation: (methods) => ({ 'x-payment-info': paymentInfo(methods.flatMap((method) => termsIn(method) ?? [])) }),
      prices: (method) =>
        acceptsOf({ auth: [method] }).map(({ accept: { amount, asset, network } }) => {
          const { min, max } = boundsOf(amount);
          return { amount: min, ...(max !== min && { max }), token: asset, network };
        }),
      title: 'payment by wallet (x402, version 2)',
      hints: [
        'Send the request without a payment to see what it costs, on which chain, and who is paid.',
        'Any x402 client pays that, such as @x402/fetch: it puts the signed authorisation here, as base64.',
        'Nothing is taken unless there is an answer. An authorisation buys one.',
      ],
    },
  },
};
