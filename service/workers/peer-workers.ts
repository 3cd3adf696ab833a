import type { BucketLimit, Taken } from '../../plugins-sdk/state/area.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import type { Workers } from '../../plugins-sdk/workers.ts';
import type { Line } from './line.ts';
import type { FromPrimary, FromWorker } from './messages.ts';

/** Milliseconds that the others have; the primary waits for them a little less long. */
const GATHER_TIMEOUT_MS = 3000;

/** The other workers, as plugins of this one ask them: through the primary process. */
export class PeerWorkers implements Workers {
  readonly #line: Line<FromPrimary, FromWorker>;
  readonly #count: number;
  readonly #offers = new Map<string, () => Promise<unknown>>();
  readonly #buckets = new MemoryArea({ now: () => performance.now() });

  /** @param count of all workers. */
  constructor(line: Line<FromPrimary, FromWorker>, count: number) {
    this.#line = line;
    this.#count = count;
  }

  offer(topic: string, own: () => Promise<unknown>): void {
    this.#offers.set(topic, own);
  }

  /** What this worker adds to a topic. */
  async own(topic: string): Promise<unknown> {
    return this.#offers.get(topic)?.();
  }

  async gather(topic: string): Promise<unknown[]> {
    const others = this.#line.ask({ kind: 'gather', topic }, GATHER_TIMEOUT_MS);
    const own = await this.own(topic);
    const values = await others;
    return [own, ...(Array.isArray(values) ? values : [])].filter((value) => value !== undefined && value !== null);
  }

  /** Each worker lets in its part of the whole. */
  async takeTokens(key: string, limit: BucketLimit, n = 1, debt = 0): Promise<Taken> {
    const max = Math.ceil(limit.max / this.#count);
    // Where there is no place for one more client, it is let in.
    const unknown = { granted: n, retryAfter: 0, left: max };
    return this.#buckets.takeTokens(key, { ...limit, max }, n, debt).catch(() => unknown);
  }
}
