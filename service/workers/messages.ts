/** What a worker says to the primary process. */
export type FromWorker =
  /** It has started by this config, and waits to be told to listen. */
  | { readonly kind: 'started'; readonly config: string }
  /** It listens. The first one sends its listener along. */
  | { readonly kind: 'ready' }
  /** It cannot start, and ends. */
  | { readonly kind: 'failed'; readonly lines: readonly string[] }
  /** It was told to stop, but not by the primary. */
  | { readonly kind: 'leaving'; readonly signal: string }
  /** Asks for what the other workers add to a topic. */
  | { readonly kind: 'gather'; readonly topic: string };

/** What the primary process says to a worker. */
export type FromPrimary =
  /** Comes with the listener, but for the first worker. */
  | { readonly kind: 'listen' }
  /** All were ready once. */
  | { readonly kind: 'serve'; readonly restarts: number }
  /** Asks for a {@link Preparation}. */
  | { readonly kind: 'prepare'; readonly announces: boolean }
  | { readonly kind: 'commit' }
  | { readonly kind: 'abort' }
  | Stop
  /** Asks for what it adds to a topic. */
  | { readonly kind: 'offer'; readonly topic: string };

export interface Stop {
  readonly kind: 'stop';
  readonly signal: string;
  /** Whether other workers go on. */
  readonly others: boolean;
}

/** What came of preparing a config: its fingerprint, or why it cannot be in force. */
export type Preparation =
  | { readonly config: string; readonly lines?: undefined }
  | { readonly config?: undefined; readonly lines: readonly string[] };

/** What is said when a reload failed. */
export const NOT_RELOADED = 'the config was not reloaded: the one before stays in force';

/** What a worker is told when its process is made. */
export interface WorkerIdentity {
  /** From 1; one that takes the place of another has its number. */
  readonly number: number;
  /** Whether it says what would be the same in every worker. */
  readonly announces: boolean;
  /** Whether the log goes to a terminal that shows colours. */
  readonly colour: boolean;
  /** Of all workers. */
  readonly count: number;
}

/** The variable that holds it. */
export const IDENTITY = 'SERVICE_WORKER';

/** The identity of this process, if it is a worker of this service. No other process, such as a plugin's own, gets to see it. */
export function readWorkerIdentity(): WorkerIdentity | undefined {
  const given = process.env[IDENTITY];
  delete process.env[IDENTITY];
  return given === undefined || process.send === undefined ? undefined : JSON.parse(given);
}
