import { withTimeout } from '../../lib/time/with-timeout.ts';
import { areaNames } from '../../plugins-sdk/former-names.ts';
import type { BucketLimit, Taken } from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import type { Workers } from '../../plugins-sdk/workers.ts';
import type { FromWorker } from './messages.ts';

/** Milliseconds that the others have; the primary waits for them a little less long. */
const GATHER_TIMEOUT_MS = 3000;

type Offer = () => Promise<unknown>;

/** The other workers, as plugins of this one ask them and are asked by them: through the primary process. */
export class PeerWorkers implements Workers {
  readonly #send: (message: FromWorker) => unknown;
  readonly #offers = new Map<string, Offer>();
  readonly #asked = new Map<number, (values: readonly unknown[]) => void>();
  readonly #buckets = new MemoryArea({ now: () => performance.now() });
  readonly #count: number;
  #last = 0;

  /** @param count of all workers. */
  constructor(send: (message: FromWorker) => unknown, count: number) {
    this.#send = send;
    this.#count = count;
  }

  offer(topic: string, own: Offer): void {
    this.#offers.set(topic, own);
  }

  async gather(topic: string): Promise<unknown[]> {
    this.#last += 1;
    const id = this.#last;
    const asked = new Promise<readonly unknown[]>((resolve) => this.#asked.set(id, resolve));
    this.#send({ kind: 'gather', id, topic });
    const [own, others] = await Promise.all([
      this.#offers.get(topic)?.(),
      withTimeout(GATHER_TIMEOUT_MS, asked, () => []),
    ]);
    this.#asked.delete(id);
    return [own, ...others].filter((value) => value !== undefined && value !== null);
  }

  /** Each worker lets in its part of the whole. */
  async takeTokens(key: string, limit: BucketLimit, n = 1, debt = 0): Promise<Taken> {
    const max = Math.ceil(limit.max / this.#count);
    // Where there is no place for one more client, it is let in.
    const unknown = { granted: n, retryAfter: 0, left: max };
    return this.#buckets.takeTokens(key, { ...limit, max }, n, debt).catch(() => unknown);
  }

  /** What the others said. */
  gathered(id: number, values: readonly unknown[]): void {
    this.#asked.get(id)?.(values);
  }

  /** Another one asks. */
  async answer(id: number, topic: string): Promise<void> {
    const value = await this.#offers
      .get(topic)?.()
      .catch(() => undefined);
    this.#send({ kind: 'answer', id, value });
  }
}

areaNames.addTo(PeerWorkers.prototype);
