import type { Log } from '../../plugins-sdk/index.ts';

/** Milliseconds between a signature that failed and a probe. */
const DOUBT_MS = 200;
/** Milliseconds between two probes of a signer that fails. */
const RETRY_MS = 1000;
/** Milliseconds without a signature after which a signer is probed. */
const IDLE_MS = 30_000;

/** The signer to watch. */
interface Watched {
  /** The signer's name in the log. */
  readonly signer: string;
  readonly log: Log;
  /** Has the signer sign a statement that is no answer. @throws Error that says what is wrong. */
  probe(): Promise<void>;
}

/**
 * Watches whether a signer signs. A probe follows a failed signature. The signer is away only if the probe fails, too: one
 * failure may concern a single request. Any signature that succeeds, also that of a probe, brings the signer back.
 */
export class SignerHealth {
  readonly #watched: Watched;
  #state: 'good' | 'doubtful' | 'away' = 'good';
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get isAvailable(): boolean {
    return this.#state !== 'away';
  }

  start(): void {
    this.#probeIn(IDLE_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  succeeded(): void {
    const { log, signer } = this.#watched;
    if (this.#state === 'away') log.info('a signer is back', { signer });
    this.#state = 'good';
    this.#probeIn(IDLE_MS);
  }

  /** Called for a signature that a request waited for. */
  failed(): void {
    if (this.#state !== 'good') return;
    this.#state = 'doubtful';
    this.#probeIn(DOUBT_MS);
  }

  #probeIn(delay: number): void {
    clearTimeout(this.#timer);
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#look(), delay).unref();
  }

  async #look(): Promise<void> {
    try {
      await this.#watched.probe();
      this.succeeded();
    } catch (error) {
      if (this.#isStopped) return;
      const { log, signer } = this.#watched;
      const message = 'a signer is away: answers that need its signature are refused';
      if (this.#state === 'doubtful') log.error(message, { signer, error });
      this.#state = this.#state === 'good' ? 'doubtful' : 'away';
      this.#probeIn(RETRY_MS);
    }
  }
}
