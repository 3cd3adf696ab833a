import { join } from 'node:path';
import { config, ENCODED, hooked, largeConfig, measuredConfig, remoteSigner, stateConfig } from './configs.ts';

/** One service that is measured. */
export interface Point {
  readonly label: string;
  readonly config: string;
  /** `encoded` where there is none. */
  readonly endpoint?: string;
  readonly connections?: number;
  /** Part of the requests of a turn, where each takes long. */
  readonly part?: number;
  /** Takes every core, with so many workers. */
  readonly workers?: number;
}

/** Services that differ in one thing. The first is the simplest: the others are compared with it. */
export interface Curve {
  readonly title: string;
  readonly across: string;
  readonly isLine: boolean;
  points(places: Places): Point[];
}

export interface Places {
  readonly upstream: string;
  readonly signer: string;
  readonly redis: string | undefined;
  readonly folder: string;
}

const MEBIBYTE = 1024;
const SIZES = [1, 4, 16, 60, 70, 256, MEBIBYTE];
/** Connections beside which what takes long is no queue. */
const FEW = 8;

function onSizes({ upstream }: Places): Point[] {
  return SIZES.map((size) => {
    // What the list is in is a few bytes, too: an answer of more than a mebibyte is refused.
    const bytes = size * 1024 - 64;
    const text = config(upstream, [{ ...ENCODED, path: `/bytes/${bytes}` }]);
    const label = size === MEBIBYTE ? '1 MiB' : `${size} KiB`;
    return { label, config: text, connections: FEW, part: 1 / Math.max(1, size / 4) };
  });
}

function onSigners({ upstream, signer }: Places): Point[] {
  const endpoint = { ...ENCODED, signatures: true };
  const next = { signer: { type: 'environment', next: { type: 'environment' } } };
  return [
    { label: 'own key', config: config(upstream, [ENCODED]) },
    { label: 'own and next key', config: config(upstream, [endpoint], next) },
    { label: 'JSON-RPC wallet', config: config(upstream, [ENCODED], remoteSigner(signer)) },
  ];
}

const engineOf = ({ redis }: Places) =>
  redis === undefined ? [] : [['Redis', { type: 'redis', url: redis }] as const];

/** By the names of their pictures. */
export const curves: Readonly<Record<string, Curve>> = {
  answers: {
    title: 'Kinds of answers',
    across: 'kind of answer',
    isLine: false,
    points: ({ upstream }) => [
      { label: 'encoded', config: measuredConfig(upstream) },
      { label: 'raw, 1.3 KiB', config: measuredConfig(upstream), endpoint: 'raw' },
      { label: 'cached', config: measuredConfig(upstream), endpoint: 'cached' },
      { label: 'with a receipt', config: measuredConfig(upstream), endpoint: 'receipt' },
      { label: 'paid on chain', config: stateConfig(upstream, 'memory'), endpoint: 'paid' },
    ],
  },
  size: { title: 'Size of the upstream’s answer', across: 'upstream answer', isLine: true, points: onSizes },
  connections: {
    title: 'Connections of clients, all busy',
    across: 'connections',
    isLine: true,
    points: ({ upstream }) =>
      [1, 8, 32, 128].map((connections) => ({
        label: String(connections),
        config: measuredConfig(upstream),
        connections,
      })),
  },
  endpoints: {
    title: 'Endpoints of one service',
    across: 'endpoints',
    isLine: true,
    points: ({ upstream }) =>
      [1, 10, 100, 1000].map((count) => ({
        label: String(count),
        config: largeConfig(upstream, count),
        endpoint: 'e0',
      })),
  },
  plugins: {
    title: 'Plugins with six hooks each',
    across: 'plugins',
    isLine: true,
    points: ({ upstream }) =>
      [0, 5, 10, 20].map((count) => ({ label: String(count), config: measuredConfig(upstream, hooked({}, count)) })),
  },
  hooks: {
    title: 'Hooks of one plugin',
    across: 'hooks',
    isLine: true,
    points: ({ upstream }) =>
      [0, 1, 2, 3, 4, 5, 6].map((count) => ({
        label: String(count),
        config: count === 0 ? measuredConfig(upstream) : measuredConfig(upstream, hooked({ config: { hooks: count } })),
      })),
  },
  signers: { title: 'Signers', across: 'who signs', isLine: false, points: onSigners },
  payments: {
    title: 'Where payments are kept',
    across: 'engine',
    isLine: false,
    points: (places) =>
      [
        ['memory', 'memory'] as const,
        ['file', { type: 'file', path: join(places.folder, 'payments') }] as const,
        ...engineOf(places),
      ].map(([label, state]) => ({
        label,
        config: stateConfig(places.upstream, state),
        endpoint: 'paid',
        connections: FEW,
      })),
  },
  limits: {
    title: 'Where rate limits are kept, cached answers',
    across: 'engine',
    isLine: false,
    points: (places) =>
      [['memory', 'memory'] as const, ...engineOf(places)].map(([label, state]) => ({
        label,
        config: stateConfig(places.upstream, state),
        endpoint: 'cached',
      })),
  },
  workers: {
    title: 'Workers on all cores of the machine',
    across: 'workers',
    isLine: false,
    points: ({ upstream }) =>
      [1, 2].map((workers) => ({
        label: String(workers),
        config: config(upstream, [ENCODED]),
        workers,
      })),
  },
};
