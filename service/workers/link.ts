import { hash } from 'node:crypto';
import type { LoadedConfig } from '../../config/index.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';
import { addressOf } from '../listener.ts';
import type { Signers } from '../signers.ts';
import { stateOf } from '../state-engine.ts';
import type { Ask } from './line.ts';

/** What a worker tells and asks the primary process. */
export type FromWorker =
  | { readonly kind: 'ready'; readonly lasting: Lasting | undefined }
  /** Asks for the other workers' values for a topic. */
  | { readonly kind: 'gather'; readonly topic: string };

/** What the primary process asks a worker. */
export type FromPrimary =
  /** Whether it has reloaded its config; undefined if it ends. `isFirst`: it is the first of all workers to do so. */
  | { readonly kind: 'reload'; readonly isFirst: boolean }
  /** Its own value for a topic. */
  | { readonly kind: 'offer'; readonly topic: string };

const OTHER =
  'server.host, server.port, settings.state or the signing key is not that of the other workers: restart the service, or restore the files';

/** Settings that all workers share until the service is restarted, whatever the files say. */
export interface Lasting {
  /** A hash of the address that they listen at and of `settings.state`. */
  readonly fixed: string;
  /** The address of the environment's key; undefined where it does not sign. */
  readonly key: string | undefined;
}

/** The facts that a worker gets when its process is forked. */
export interface WorkerIdentity {
  /** From 1; a worker that replaces another one has its number. */
  readonly number: number;
  /** The number of workers. */
  readonly count: number;
  /** How many workers have been replaced so far. */
  readonly restarts: number;
  /** The shared settings of the workers that run already. */
  readonly lasting?: Lasting | undefined;
}

/** The environment variable that holds a worker's identity, as JSON. */
export const IDENTITY = 'SERVICE_WORKER';

/** Reads this process's identity if it is a worker, and deletes the variable: child processes must not inherit it. */
export function readWorkerIdentity(): WorkerIdentity | undefined {
  const given = process.env[IDENTITY];
  delete process.env[IDENTITY];
  return given === undefined || process.send === undefined ? undefined : JSON.parse(given);
}

/** Milliseconds that a worker has to answer, and that the primary has to collect all answers. */
export const ANSWER_TIMEOUT_MS = 2000;
const GATHER_TIMEOUT_MS = 3000;

export type WorkerLink = ReturnType<typeof workerLink>;

/** Makes a worker's link to the other workers, which it reaches through the primary process. */
export function workerLink({ count, restarts, lasting: theirs }: WorkerIdentity, ask: Ask<FromWorker>) {
  let lasting: Lasting | undefined;
  const offers = new Map<string, () => Promise<unknown>>();
  /** Returns this worker's own value for a topic. */
  const own = async (topic: string): Promise<unknown> => offers.get(topic)?.();
  return {
    count,
    offer: (topic: string, added: () => Promise<unknown>) => void offers.set(topic, added),
    own,
    gather: async (topic: string): Promise<unknown[]> => {
      const others = ask({ kind: 'gather', topic }, GATHER_TIMEOUT_MS);
      const [first, values] = await Promise.all([own(topic), others]);
      return [first, ...(Array.isArray(values) ? values : [])].filter((value) => value !== undefined && value !== null);
    },
    /** Makes the instruments on the worker processes. */
    measure: (meters: Meters): void => {
      meters.gauge({ name: 'workers', help: 'Processes of the service that answer' }, () => 1);
      const help = 'Workers that were replaced since the start';
      meters.gauge({ name: 'worker_restarts', help, across: 'max' }, () => restarts);
    },
    /** Checks that this worker listens, keeps state and signs as the others do: they share clients and payments. @throws Error */
    check: (loaded: LoadedConfig, signers: Signers): void => {
      const key = signers.ownKey(loaded.config)?.address;
      const fixed = hash('sha256', JSON.stringify([addressOf(loaded.config), stateOf(loaded)]));
      lasting = { fixed, key };
      const isOther = theirs !== undefined && (fixed !== theirs.fixed || (key && theirs.key && key !== theirs.key));
      if (isOther) throw new Error(OTHER);
    },
    /** Reports to the primary process that this worker serves. */
    ready: () => void ask({ kind: 'ready', lasting }, ANSWER_TIMEOUT_MS),
  };
}
