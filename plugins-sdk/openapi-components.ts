/** The parts of the OpenAPI document that are the same for every configuration. */

export type Members = Readonly<Record<string, unknown>>;

export function refTo(kind: 'schemas' | 'headers' | 'responses', name: string): Members {
  return { $ref: `#/components/${kind}/${name}` };
}

const schema = (name: string) => refTo('schemas', name);
const text = (pattern: string, description: string) => ({ type: 'string', pattern, description });

/** All members are required but those named. */
function object(description: string, properties: Members, optional: readonly string[] = []): Members {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', description, required, properties };
}

const DIGEST =
  '`signature` is the EIP-191 personal signature, by `node`, of the 32-byte digest ' +
  '`keccak256(abi.encodePacked(bytes32 endpointId, uint256 timestamp, bytes data))`. ' +
  'Compare `node` and `endpointId` with those that you expect: an answer proves nothing about its own names.';

const data = {
  ...schema('Bytes'),
  description:
    'ABI-encoded value(s); where the operator has them encrypted, `abi.encode(bytes32 handle, bytes inputProof)`',
};
const rawData = {
  description:
    'What the upstream says: any JSON value. What is signed in place of `data` is the keccak256 of its canonical JSON text (RFC 8785)',
};

/** The members of a signed answer, `field` being what it shows of the upstream's. */
function answer(field: Members): Members {
  return {
    node: schema('Address'),
    endpointId: schema('Bytes32'),
    timestamp: schema('Timestamp'),
    ...field,
    signature: schema('Signature'),
    proof: schema('Proof'),
  };
}

const answers = { Encoded: answer({ data }), Raw: answer({ rawData }) };
const OPTIONAL = ['proof'];

const requestId = { ...schema('Bytes32'), description: 'Whoever knows it can read the answer' };
const pollUrl = text('^/requests/0x[0-9a-f]{64}$', 'Where to poll');
const frame = { done: { const: true } };
const complete = { requestId, status: { const: 'complete' } };

const schemas = {
  Address: text('^0x[0-9a-fA-F]{40}$', 'An address; those of this service carry the EIP-55 checksum'),
  Bytes32: text('^0x[0-9a-f]{64}$', '32 bytes of hex'),
  Bytes: text('^0x([0-9a-fA-F]{2})*$', 'Any number of bytes of hex'),
  Signature: text('^0x[0-9a-f]{130}$', '65 bytes of hex: r, s and v, which is 27 or 28'),
  Timestamp: { type: 'integer', minimum: 0, description: 'Unix time in seconds' },
  Error: object('What went wrong', { error: { type: 'string' } }),
  EncodedAnswer: object(DIGEST, answers.Encoded, OPTIONAL),
  RawAnswer: object(DIGEST, answers.Raw, OPTIONAL),
  EncodedFrame: object(`The data of the one event. ${DIGEST}`, { ...frame, ...answers.Encoded }, OPTIONAL),
  RawFrame: object(`The data of the one event. ${DIGEST}`, { ...frame, ...answers.Raw }, OPTIONAL),
  Proof: object('TLS proof by an attestor, where the operator has the upstream proven and the proof succeeded', {
    claim: object('What the attestor vouches for', {
      provider: { const: 'http' },
      parameters: { type: 'string', description: 'JSON text: the request and the patterns that the response matched' },
      context: { type: 'string', description: 'JSON text, such as the values of named groups' },
      owner: schema('Address'),
      timestampS: schema('Timestamp'),
      epoch: { type: 'integer' },
      identifier: { ...schema('Bytes'), description: 'keccak256 of provider, parameters and context' },
    }),
    signatures: object('Who vouches', {
      attestorAddress: schema('Address'),
      claimSignature: schema('Bytes'),
    }),
  }),
  AsyncSubmission: object('The request was accepted', { requestId, status: { const: 'pending' }, pollUrl }),
  AsyncRecord: {
    description: 'How far a request is',
    oneOf: [schema('AsyncRunning'), schema('AsyncEncodedAnswer'), schema('AsyncRawAnswer'), schema('AsyncFailure')],
  },
  AsyncRunning: object('Poll again', { requestId, status: { enum: ['pending', 'processing'] }, pollUrl }),
  AsyncEncodedAnswer: object(DIGEST, { ...complete, ...answers.Encoded }, OPTIONAL),
  AsyncRawAnswer: object(DIGEST, { ...complete, ...answers.Raw }, OPTIONAL),
  AsyncFailure: object('There will be no answer', {
    requestId,
    status: { const: 'failed' },
    error: { type: 'string', description: 'The text that a synchronous endpoint would have answered' },
  }),
  PaymentChallenge: object('What to pay, to whom, and until when', {
    node: schema('Address'),
    endpointId: schema('Bytes32'),
    amount: text('^[1-9][0-9]*$', 'In the smallest unit of the token'),
    token: { ...schema('Address'), description: 'ERC-20 token; the zero address is the native asset' },
    network: { type: 'integer', minimum: 1, description: 'Chain ID (EIP-155)' },
    recipient: schema('Address'),
    expiresAt: schema('Timestamp'),
  }),
  PaymentProof: object('The content of X-Payment-Proof', {
    txHash: text('^0x[0-9a-fA-F]{64}$', 'The transaction with which was paid; each counts once'),
    expiresAt: { ...schema('Timestamp'), description: 'Unix time in seconds, 10 minutes ahead at most' },
    signature: text(
      '^0x[0-9a-fA-F]{130}$',
      'EIP-191 personal signature, by the account that sent the transaction, of the 32-byte digest ' +
        '`keccak256(abi.encodePacked(address node, bytes32 endpointId, uint64 expiresAt))`',
    ),
  }),
  Health: object('The service is up', { status: { const: 'ok' }, node: schema('Address') }),
};

const headers = {
  RequestId: { description: 'Names the request in the log of the service', required: true, schema: schema('Bytes32') },
  RetryAfter: {
    description: 'Seconds to wait',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  NoStore: { description: 'No cache may keep the response', required: true, schema: { const: 'no-store' } },
};

/** A response with a JSON body. */
export function jsonResponse(description: string, content: Members, extraHeaders: Members = {}): Members {
  return {
    description,
    headers: { 'X-Request-Id': refTo('headers', 'RequestId'), ...extraHeaders },
    content: { 'application/json': content },
  };
}

/** A refusal; `texts` are those that its `error` may hold. */
export function errorResponse(description: string, texts: readonly string[], extraHeaders: Members = {}): Members {
  const examples = Object.fromEntries(texts.map((error) => [nameOf(error), { value: { error } }]));
  return jsonResponse(description, { schema: schema('Error'), examples }, extraHeaders);
}

/** Letters and digits of a text, joined with underscores. */
export function nameOf(label: string): string {
  return label.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

export const noStore = { 'Cache-Control': refTo('headers', 'NoStore') };

const responses = {
  Dropped: errorResponse('A plugin of the operator refused; it may choose another status and text', [
    'Request dropped by plugin "<name>"',
    'Plugin "<name>" budget exhausted',
  ]),
  EndpointNotFound: errorResponse('The operator has changed or removed the endpoint', ['Endpoint not found']),
  BodyTooLarge: errorResponse('The request body is larger than 65,536 bytes', ['Request body too large']),
  WrongMediaType: errorResponse('The request body is announced as something else, or compressed', [
    'Content-Type must be application/json',
  ]),
  RateLimited: errorResponse('Too many requests from this address', ['Too Many Requests'], {
    'Retry-After': refTo('headers', 'RetryAfter'),
  }),
  InternalError: errorResponse('Nothing was signed; the log of the service says why', ['Internal server error']),
};

export const components = { schemas, headers, responses };
