import { checksumAddress } from '../../lib/eth/hex.ts';
import { ethers } from '../../lib/process/packages.ts';
import {
  addressSchema,
  type CheckContext,
  checkAddress,
  checkPlainHttp,
  closedObject,
  type EndpointDraft,
  error,
  type Finding,
  isHeaderValue,
  keys,
  millisecondsSchema,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import {
  definePlugin,
  type Endpoint,
  isHex,
  perEndpoint,
  Refusal,
  type Services,
  type Static,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import { checkUrl } from '../shared/check-url.ts';
import { requireSdk } from './installed.ts';
import { integerOf } from './integer.ts';
import { encrypted } from './openapi.ts';
import { Pool } from './pool.ts';
import { reasonOf } from './reason.ts';
import { spawnWorker } from './spawn.ts';

const widths = { euint8: 8, euint16: 16, euint32: 32, euint64: 64, euint128: 128, euint256: 256 } as const;

const encryptKey = optionalKey(
  'endpoint',
  'encrypt',
  closedObject(
    {
      type: Type.Enum(['euint8', 'euint16', 'euint32', 'euint64', 'euint128', 'euint256'], {
        description: 'The value must fit',
      }),
      contract: addressSchema('address of the contract that ingests the ciphertext, 0x and 40 hex digits'),
    },
    'FHE-encrypts the encoded integer; requires settings.fhe',
  ),
);

const url = (description: string) => Type.String({ pattern: '^https?://', description });
const RelayerSchema = closedObject({
  network: Type.Enum(['sepolia', 'mainnet'], { description: 'Chain of the contracts' }),
  rpcUrl: url('URL of a JSON-RPC node of that chain'),
  verifier: addressSchema('address of the contract that will call the consumer, 0x and 40 hex digits'),
  apiKey: Type.Optional(Type.String({ description: 'Key of the relayer' })),
  relayerUrl: Type.Optional(url('URL of a relayer; default that of the network')),
  timeout: Type.Optional(millisecondsSchema('Time limit of an encryption; default 1m')),
});
type Relayer = Static<typeof RelayerSchema>;
const relayerKey = optionalKey(
  'settings',
  'fhe',
  Type.Union([Type.Literal('none'), RelayerSchema], { description: 'Relayer of FHE encryptions; default none' }),
);

const DEFAULT_TIMEOUT_MS = 60_000;

function relayerIn(config: CheckContext['config']): Relayer | undefined {
  const relayer = relayerKey.in(config);
  return relayer === 'none' ? undefined : relayer;
}

/** Milliseconds of the budget beyond those of an encryption. */
const MARGIN_MS = 1000;

const OwnSchema = closedObject({
  workers: Type.Integer({ minimum: 1, maximum: 64, default: 1, description: 'Encryptions at the same time' }),
  queue: Type.Integer({ minimum: 0, maximum: 1000, default: 4, description: 'Values that may wait for a worker' }),
  lifetime: millisecondsSchema('Milliseconds after which a worker is replaced and fetches the keys again', {
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 3_600_000,
  }),
});

const ORACLE = 'beside encrypt lets clients find out the value: they try which products still fit';

function* checkEndpoint(endpoint: EndpointDraft, configured: boolean): Iterable<Finding> {
  const encrypt = encryptKey.of(endpoint);
  if (encrypt === undefined) return;
  const at = `${endpoint.path}.encrypt`;
  const { type, path, times } = keys.encoding.of(endpoint) ?? {};
  if (!configured) yield error(at, 'requires settings.fhe');
  if (type !== 'int256' && type !== 'uint256') yield error(at, 'requires an encoding with type int256 or uint256');
  if (times === '*') yield warning(`${endpoint.path}.encoding.times`, ORACLE);
  if (path === '*') yield error(at, 'requires an encoding with a path of its own');
  yield* checkAddress(`${at}.contract`, encrypt.contract);
}

const KEYS = 'read the key that is sent, and give other keys to encrypt with';
/** The SDK appends paths to the URL, and its `fetch` quotes a URL with credentials in an error. */
const INSTEAD = { credentials: ': use apiKey', query: '' };
const NO_KEY = 'is empty or holds a character that no header can carry';

function* checkRelayer({ verifier, rpcUrl, relayerUrl, apiKey = 'none' }: Relayer): Iterable<Finding> {
  const at = 'settings.fhe';
  yield* checkAddress(`${at}.verifier`, verifier);
  if (!URL.canParse(rpcUrl)) yield error(`${at}.rpcUrl`, 'is no valid URL');
  yield* checkPlainHttp(`${at}.rpcUrl`, rpcUrl, 'name the contracts and signers that are trusted');
  if (relayerUrl !== undefined) yield* checkUrl(`${at}.relayerUrl`, relayerUrl, KEYS, INSTEAD);
  if (apiKey.trim() === '' || !isHeaderValue(apiKey)) yield error(`${at}.apiKey`, NO_KEY);
}

function* check({ config, endpoints }: CheckContext): Iterable<Finding> {
  const relayer = relayerIn(config);
  if (relayer !== undefined) yield* checkRelayer(relayer);
  for (const endpoint of endpoints) yield* checkEndpoint(endpoint, relayer !== undefined);
}

/** Returns how an endpoint's integer is encrypted; undefined if it is not. */
function encryptionOf(endpoint: Endpoint) {
  const encrypt = encryptKey.of(endpoint);
  if (encrypt === undefined) return undefined;
  const signed = keys.encoding.of(endpoint)?.type !== 'uint256';
  return { bits: widths[encrypt.type], signed, contract: checksumAddress(encrypt.contract) };
}

function encrypting({ endpoints, meters }: Services, relayer: Relayer, pool: Pool): NonNullable<Taps['encrypt']> {
  meters.gauge({ name: 'fhe_queue', help: 'Values that wait for an FHE worker' }, () => pool.waiting);
  meters.gauge({ name: 'fhe_workers_busy', help: 'FHE workers that encrypt a value' }, () => pool.busy);
  const seconds = meters.histogram({
    name: 'fhe_encryption_seconds',
    help: 'Duration of FHE encryptions, with the wait for a worker: ok, failed, or abandoned by the client',
    labels: ['outcome'],
  });
  const encryptions = perEndpoint(endpoints, encryptionOf);
  return async (data, exchange, { signal }) => {
    const encryption = encryptions(exchange.endpoint);
    if (encryption === undefined) return undefined;
    const { bits, signed, contract } = encryption;
    const started = performance.now();
    let outcome = 'ok';
    try {
      const task = { value: integerOf(data, signed, bits), bits, contract };
      const { handle, inputProof } = await pool.encrypt(task, signal);
      const encoded = ethers().AbiCoder.defaultAbiCoder().encode(['bytes32', 'bytes'], [handle, inputProof]);
      if (!isHex(encoded)) throw new Error('the ciphertext cannot be encoded');
      return encoded;
    } catch (error) {
      outcome = exchange.abandoned ? 'abandoned' : 'failed';
      const reason = reasonOf(error, [relayer.apiKey ?? '', relayer.rpcUrl]);
      throw new Refusal(502, 'FHE encryption failed', { reason, failureClass: 'encode' });
    } finally {
      seconds({ outcome }, (performance.now() - started) / 1000);
    }
  };
}

/**
 * Replaces an encoded integer by `abi.encode(bytes32 handle, bytes inputProof)`: a ciphertext that nobody can read, and that
 * the consumer's contract can compute with. Every failure is a 502 with the same text; the reason is in the log.
 */
export const fhe = definePlugin({
  name: 'fhe',
  // An encryption times out before the budget ends.
  budget: (config) => (relayerIn(config)?.timeout ?? DEFAULT_TIMEOUT_MS) + MARGIN_MS,
  keys: [encryptKey, relayerKey],
  configSchema: OwnSchema,
  identity: {
    encrypt: (endpoint) => {
      const encrypt = encryptKey.of(endpoint);
      return encrypt === undefined ? null : { type: encrypt.type, contract: encrypt.contract.toLowerCase() };
    },
  },
  check: (context) => [...check(context)],
  openapi: () => ({ operation: (endpoint) => (encryptKey.of(endpoint) === undefined ? {} : encrypted) }),
  setup(services, own) {
    const relayer = relayerIn(services.config);
    // No endpoint has `encrypt` then: the check refuses it without a relayer.
    if (relayer === undefined) return {};
    const { timeout = DEFAULT_TIMEOUT_MS } = relayer;
    const connection = { ...relayer, verifier: checksumAddress(relayer.verifier) };
    const pool = new Pool({ ...own, timeout, spawn: () => spawnWorker(connection) });
    return { start: requireSdk, stop: () => pool.stop(), hooks: { encrypt: encrypting(services, relayer, pool) } };
  },
});
