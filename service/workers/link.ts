import { hash } from 'node:crypto';
import type { LoadedConfig } from '../../config/index.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';
import { addressOf } from '../listener.ts';
import type { Signers } from '../signers.ts';
import { stateOf } from '../state-engine.ts';
import type { Line } from './line.ts';

/** What a worker asks of the primary process, or tells it. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly lasting: Lasting | undefined }
  /** It has got a signal, and drains. */
  | { readonly kind: 'ending' }
  /** Asks for what the other workers add to a topic. */
  | { readonly kind: 'gather'; readonly topic: string };

/** What the primary process asks of a worker. */
export type FromPrimary =
  /** Whether it serves by the config that the files have now. @param isFirst of all workers. */
  | { readonly kind: 'reload'; readonly isFirst: boolean }
  /** What it adds to a topic. */
  | { readonly kind: 'offer'; readonly topic: string };

const OTHER =
  'server.host, server.port, settings.state or the signing key is not that of the other workers: restart the service, or restore the files';

/** What workers have in common until the service is restarted, whatever the files say: fingerprints. */
export interface Lasting {
  /** Of where they listen, and of their state. */
  readonly fixed: string;
  /** Of the key of the environment, where it signs. */
  readonly key: string | undefined;
}

/** What a worker is told when its process is made. */
export interface WorkerIdentity {
  /** From 1; one that takes the place of another has its number. */
  readonly number: number;
  /** Of all workers. */
  readonly count: number;
  /** Workers that were replaced so far. */
  readonly restarts: number;
  /** Of the workers that are there. */
  readonly lasting?: Lasting | undefined;
}

/** The variable that holds it. */
export const IDENTITY = 'SERVICE_WORKER';

/** The identity of this process, if it is a worker of this service. No other process, such as a plugin's own, gets to see it. */
export function readWorkerIdentity(): WorkerIdentity | undefined {
  const given = process.env[IDENTITY];
  delete process.env[IDENTITY];
  return given === undefined || process.send === undefined ? undefined : JSON.parse(given);
}

/** Milliseconds that a worker has to answer, and that the primary has to gather the answers. */
export const ANSWER_TIMEOUT_MS = 2000;
const GATHER_TIMEOUT_MS = 3000;

export type WorkerLink = ReturnType<typeof workerLink>;

/** The other workers, as this one asks them: through the primary process. */
export function workerLink(identity: WorkerIdentity, line: Line<FromPrimary, FromWorker>) {
  const { count, restarts } = identity;
  let lasting: Lasting | undefined;
  const offers = new Map<string, () => Promise<unknown>>();
  /** What this worker adds to a topic. */
  const own = async (topic: string): Promise<unknown> => offers.get(topic)?.();
  return {
    count,
    offer: (topic: string, added: () => Promise<unknown>) => void offers.set(topic, added),
    own,
    gather: async (topic: string): Promise<unknown[]> => {
      const others = line.ask({ kind: 'gather', topic }, GATHER_TIMEOUT_MS);
      const [first, values] = await Promise.all([own(topic), others]);
      return [first, ...(Array.isArray(values) ? values : [])].filter((value) => value !== undefined && value !== null);
    },
    /** Asks for instruments of what is known of the processes. */
    measure: (meters: Meters): void => {
      meters.gauge({ name: 'workers', help: 'Processes of the service that answer' }, () => 1);
      const help = 'Workers that were replaced since the start';
      meters.gauge({ name: 'worker_restarts', help, across: 'max' }, () => restarts);
    },
    /** Clients must find it, a payment that others have seen must be known to it, and answers must have their signature. @throws Error */
    check: (loaded: LoadedConfig, signers: Signers): void => {
      const key = signers.ownKey(loaded.config)?.address;
      const fixed = hash('sha256', JSON.stringify([addressOf(loaded.config), stateOf(loaded)]));
      lasting = { fixed, key };
      const { lasting: theirs = lasting } = identity;
      if (fixed !== theirs.fixed || (key && theirs.key && key !== theirs.key)) throw new Error(OTHER);
    },
    /** Tells that this worker serves. */
    ready: () => void line.ask({ kind: 'ready', lasting }, ANSWER_TIMEOUT_MS),
  };
}
