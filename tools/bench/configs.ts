import { join } from 'node:path';
import { stringify } from 'yaml';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import { RECIPIENT } from './payments.ts';
import { root } from './rounds.ts';
import { SIGNER_KEY } from './signer-key.ts';

const parameters = [{ name: 'symbol', required: true }];
const encoding = { type: 'int256', path: '$.price', times: '1e18' };

/** An endpoint whose answers are encoded. */
export const ENCODED = { name: 'encoded', path: '/small', parameters, encoding };

/** @param settings as in a config file, and so is what follows. */
export function config(
  upstream: string,
  endpoints: readonly object[],
  settings: object = {},
  server: object = {},
): string {
  return stringify({
    version: '1.0',
    server: { port: 0, rateLimit: { max: 1_000_000_000, headers: false }, ...server },
    settings,
    apis: [{ name: 'bench', url: upstream, auth: { type: 'apiKey', keys: ['benchmark-key-of-16'] }, endpoints }],
  });
}

/** An encoded, a raw and a cached endpoint, and one with receipts, which not every signer signs. @param settings as in a config file. */
export function measuredConfig(upstream: string, settings: object = {}): string {
  const endpoints = [
    ENCODED,
    { name: 'raw', path: '/large', parameters },
    { name: 'cached', path: '/small/kept', parameters, encoding, cache: { maxAge: 3_600_000 } },
    ...('signer' in settings ? [] : [{ name: 'receipt', path: '/small/receipt', parameters, encoding, receipt: true }]),
  ];
  return config(upstream, endpoints, settings);
}

/** Settings with the plugin `six-hooks.mjs`, so often. @param entry more of its entries. @param times how often it is there. */
export function hooked(entry: object = {}, times = 1): object {
  const source = join(root, 'tools/bench/six-hooks.mjs');
  const plugins = Array.from({ length: times }, (_, i) => ({ source, config: { name: `six-hooks-${i}` }, ...entry }));
  return { plugins };
}

/** Settings with the wallet `signer.ts`. */
export function remoteSigner(url: string): object {
  const { address } = createSigner(SIGNER_KEY);
  return { signer: { type: 'json-rpc', url, address, concurrency: 32 } };
}

/** Many endpoints, for the time to start. */
export function largeConfig(upstream: string, count: number): string {
  const endpoints = Array.from({ length: count }, (_, i) => ({ name: `e${i}`, path: `/e/${i}`, parameters, encoding }));
  return config(upstream, endpoints);
}

/** An encoded, a cached and a paid endpoint, with their state in an engine or in memory. */
export function stateConfig(upstream: string, state: object | 'memory'): string {
  const most = 1_000_000_000;
  const x402 = { type: 'x402', network: 31337, rpc: `${upstream}/rpc`, token: `0x${'0'.repeat(40)}` };
  const auth = { ...x402, amount: '1', recipient: RECIPIENT };
  const endpoints = [
    ENCODED,
    { name: 'cached', path: '/small/kept', parameters, encoding, cache: { maxAge: 3_600_000 } },
    { name: 'paid', path: '/small/paid', parameters, encoding, auth },
  ];
  return config(upstream, endpoints, { state }, { rateLimit: { max: most, x402: { max: most } } });
}

/** A raw endpoint, and one whose path is the requester's, for the documents of `documents.ts`. */
export function largestConfig(upstream: string): string {
  const parameters = [{ name: 'document', required: true }];
  const endpoints = [
    { name: 'raw', path: '/', parameters },
    { name: 'path', path: '/path', parameters, encoding: { type: 'int256', path: '*' } },
  ];
  return config(upstream, endpoints);
}
