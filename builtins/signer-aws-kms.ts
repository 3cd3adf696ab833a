import type { KMSClient } from '@aws-sdk/client-kms';
import { addressOfSpki, parseDerSignature, recoverableSignature } from '../lib/eth/signatures.ts';
import { optionalPackage } from '../lib/process/packages.ts';
import { closedObject } from '../plugins-sdk/config.ts';
import { definePlugin, type HttpClient, RequestFailure, type Static, Type } from '../plugins-sdk/index.ts';
import { type Address, type OpenSigner, signersIn, signerType } from '../plugins-sdk/signing.ts';
import { checkUrl } from './shared/check-url.ts';
import { openOver } from './shared/http-signer.ts';

const Schema = closedObject({
  keyId: Type.String({ minLength: 1, description: 'Id, ARN or alias of the key' }),
  region: Type.String({ pattern: '^[a-z0-9-]+$', description: 'Where the key is, such as eu-central-1' }),
  endpoint: Type.Optional(
    Type.String({ pattern: '^https?://', description: 'Of a VPC or a stand-in; default that of AWS in the region' }),
  ),
});

const MISSING = 'needs a package that is not installed: npm install @aws-sdk/client-kms@3';
/** Milliseconds for one request of the library, and the most bytes of its answer. */
const LIMITS = { timeout: 10_000, maxBytes: 65_536 };
/** Attempts of the library: it repeats a throttled request once. */
const ATTEMPTS = 2;

/** A request of the library, to KMS or to a source of credentials. */
interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

function urlOf({ protocol, hostname, port, path, query = {} }: SdkRequest): URL {
  const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`);
  for (const [name, values] of Object.entries(query))
    for (const value of [values ?? ''].flat()) url.searchParams.append(name, value);
  return url;
}

/** Sends the library's requests, because its own client reads answers of unbounded length. */
function requestHandler(client: HttpClient) {
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle(request: SdkRequest, { abortSignal: signal }: { abortSignal?: AbortSignal } = {}) {
      const { method, headers } = request;
      const body = typeof request.body === 'object' ? new TextDecoder().decode(request.body) : request.body;
      const answer = await client.request({ method, url: urlOf(request), headers, body, signal, ...LIMITS });
      return { response: { statusCode: answer.status, headers: answer.headers, body: answer.body } };
    },
  };
}

const UNACCEPTED = 'the AWS credentials are not accepted';
/** Explains the errors to operators. Some names mislead: `InvalidSignatureException` is about the signature of the request. */
const MEANINGS = new Map([
  ['AccessDeniedException', 'the AWS credentials do not allow it for this key: see keyId'],
  ['CredentialsProviderError', 'no AWS credentials were found in the environment, a profile or a role'],
  ['DisabledException', 'the key is disabled'],
  ['ExpiredTokenException', UNACCEPTED],
  ['InvalidArnException', 'see keyId'],
  ['InvalidKeyUsageException', 'the key is not for signing: see keyId'],
  ['InvalidSignatureException', UNACCEPTED],
  ['KMSInvalidStateException', 'the key cannot be used now, it may wait for its deletion'],
  ['NotFoundException', 'there is no such key there: see keyId and region'],
  ['ThrottlingException', 'more requests than the quota of the AWS account'],
  ['UnrecognizedClientException', UNACCEPTED],
  ['SyntaxError', 'the answer is not one of KMS'],
]);

/** Makes an error from the name of the server's error, since its text may quote the request. */
function failureOf(operation: string, error: unknown): Error {
  if (error instanceof RequestFailure) return new Error(`KMS ${operation}: ${error.kind}: ${error.message}`);
  const name = error instanceof Error && /^\w{1,64}$/.test(error.name) ? error.name : 'unknown error';
  // The library's name for an error without one, such as that of a proxy.
  if (name === 'Unknown') return new Error(`KMS ${operation}: HTTP status ${Object(error).$metadata?.httpStatusCode}`);
  const meaning = MEANINGS.get(name);
  return new Error(`KMS ${operation}: ${name}${meaning === undefined ? '' : `: ${meaning}`}`);
}

type Kms = typeof import('@aws-sdk/client-kms');

async function addressOfKey({ GetPublicKeyCommand }: Kms, kms: KMSClient, KeyId: string): Promise<Address> {
  const key = await kms.send(new GetPublicKeyCommand({ KeyId })).catch((error: unknown) => {
    throw failureOf('GetPublicKey', error);
  });
  const { KeySpec, KeyUsage, SigningAlgorithms = [], PublicKey = new Uint8Array() } = key;
  if (KeySpec !== 'ECC_SECG_P256K1' || KeyUsage !== 'SIGN_VERIFY' || !SigningAlgorithms.includes('ECDSA_SHA_256'))
    throw new Error('the key must be ECC_SECG_P256K1 for SIGN_VERIFY: see keyId');
  return addressOfSpki(PublicKey);
}

async function open({ keyId: KeyId, region, endpoint }: Static<typeof Schema>): Promise<OpenSigner> {
  const library = await optionalPackage(() => import('@aws-sdk/client-kms'), MISSING);
  const where = { region, ...(endpoint === undefined ? {} : { endpoint }) };
  return openOver(async (client) => {
    const kms = new library.KMSClient({ ...where, maxAttempts: ATTEMPTS, requestHandler: requestHandler(client) });
    const address = await addressOfKey(library, kms, KeyId);
    const sign: OpenSigner['sign'] = async ({ hash }, abortSignal) => {
      const question = { KeyId, Message: hash, MessageType: 'DIGEST', SigningAlgorithm: 'ECDSA_SHA_256' } as const;
      const { Signature = new Uint8Array() } = await kms
        .send(new library.SignCommand(question), { abortSignal })
        .catch((error: unknown) => {
          throw failureOf('Sign', error);
        });
      return recoverableSignature(hash, parseDerSignature(Signature), address);
    };
    return { address, sign };
  });
}

/** Signs with a key that never leaves AWS KMS. The library finds the credentials; none are in the config. */
export const signerAwsKms = definePlugin({
  name: 'signer-aws-kms',
  signers: { 'aws-kms': signerType({ schema: Schema, open }) },
  check: ({ config }) =>
    signersIn(config).flatMap(([at, { type, endpoint }]) => {
      if (type !== 'aws-kms' || typeof endpoint !== 'string') return [];
      return checkUrl(`${at}endpoint`, endpoint, 'have what they like signed');
    }),
  setup: () => ({}),
});
