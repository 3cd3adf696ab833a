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
  #isDoubtful = false;
  #isAway = false;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get isAvailable(): boolean {
    return !this.#isAway;
  }

  start(): void {
    this.#probeIn(IDLE_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  succeeded(): void {
    this.#isDoubtful = false;
    this.#probeIn(IDLE_MS);
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#watched.log.info('a signer is back', { signer: this.#watched.signer });
  }

  /** Called for a signature that a request waited for. */
  failed(): void {
    if (this.#isDoubtful) return;
    this.#isDoubtful = true;
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
      this.#probeFailed(error);
    }
  }

  #probeFailed(error: unknown): void {
    if (this.#isStopped) return;
    if (this.#isDoubtful && !this.#isAway) {
      this.#isAway = true;
      const { log, signer } = this.#watched;
      log.error('a signer is away: answers that need its signature are refused', { signer, error });
    }
    this.#isDoubtful = true;
    this.#probeIn(RETRY_MS);
  }
}
