import { endsWith, type Lifetime } from '../support/lifetime.ts';
import { oneApi, type RunningService, startTestService } from '../support/service.ts';
import type { Upstream } from '../support/upstream.ts';
import { type Relayer, type RelayerOptions, startRelayer } from './relayer.ts';

/** The contract that will call the consumer. */
export const VERIFIER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
export const CONSUMER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
export const API_KEY = 'key-of-the-operator';

export interface FheOptions {
  /** More of `settings.fhe`. */
  readonly fhe?: Readonly<Record<string, unknown>>;
  /** The plugin's own config. */
  readonly own?: Readonly<Record<string, unknown>>;
  /** More of `settings`. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** The endpoints that all tests use: the value is whatever the upstream's `/<name>` answers at `$.v`. */
export function endpoints(): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const encrypted = (type: string, encoded = 'uint256') => ({
    encoding: { type: encoded, path: '$.v' },
    encrypt: { type, contract: CONSUMER },
  });
  return {
    small: encrypted('euint8'),
    signed: encrypted('euint8', 'int256'),
    middle: encrypted('euint64'),
    large: encrypted('euint256'),
    plain: { encoding: { type: 'uint256', path: '$.v' } },
    receipted: { ...encrypted('euint8'), receipt: true, parameters: [{ name: 'q' }] },
    later: { ...encrypted('euint8'), mode: 'async' },
    kept: { ...encrypted('euint8'), cache: { maxAge: 3_600_000 } },
    event: { ...encrypted('euint8'), mode: 'stream' },
  };
}

/** Milliseconds: a test that waits for an encryption to come to a step would wait for ever where a busy machine ended it. */
const PATIENCE = 300_000;

/** A service whose `settings.fhe` points at the relayer. */
export function startFheService(
  relayer: Pick<Relayer, 'rpcUrl' | 'relayerUrl'>,
  upstream: Upstream,
  { fhe = {}, own = {}, settings = {} }: FheOptions = {},
): Promise<RunningService> {
  const named = { rpcUrl: relayer.rpcUrl, relayerUrl: relayer.relayerUrl, apiKey: API_KEY, verifier: VERIFIER };
  return startTestService({
    settings: {
      fhe: { network: 'sepolia', timeout: PATIENCE, ...named, ...fhe },
      plugins: [{ source: 'builtin:fhe', config: own }],
      ...settings,
    },
    ...oneApi(upstream.url, endpoints()),
  });
}

/** A relayer, and a service that encrypts by it. */
export async function fheFor(lifetime: Lifetime, upstream: Upstream, of: RelayerOptions, options?: FheOptions) {
  const relayer = await endsWith(lifetime, startRelayer(of));
  return { relayer, service: await endsWith(lifetime, startFheService(relayer, upstream, options)) };
}

/** Why encryptions failed, as the log tells. */
export function reasons(service: RunningService): unknown[] {
  return service.logs.filter(({ message }) => message === 'FHE encryption failed').map(({ fields }) => fields.detail);
}
