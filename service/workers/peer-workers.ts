import { LATE, withTimeout } from '../../lib/time/with-timeout.ts';
import { areaNames } from '../../plugins-sdk/former-names.ts';
import { type BucketLimit, StateUnavailable, type Taken } from '../../plugins-sdk/state/area.ts';
import type { Workers } from '../../plugins-sdk/workers.ts';
import type { FromWorker } from './messages.ts';

/** Milliseconds that the others have; the primary waits for them a little less long. */
const GATHER_TIMEOUT_MS = 3000;

/** Milliseconds that the primary has for a bucket: it does nothing slow, but on a busy machine it waits for a processor. */
const TAKE_TIMEOUT_MS = 2000;

type Offer = () => Promise<unknown>;

/** The other workers, as plugins of this one ask them and are asked by them: through the primary process. */
export class PeerWorkers implements Workers {
  readonly #send: (message: FromWorker) => unknown;
  readonly #offers = new Map<string, Offer>();
  readonly #asked = new Map<number, (values: readonly unknown[]) => void>();
  readonly #taking = new Map<number, (taken: Taken) => void>();
  #last = 0;

  constructor(send: (message: FromWorker) => unknown) {
    this.#send = send;
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

  async takeTokens(key: string, { max, window, until = 0 }: BucketLimit, n = 1, debt = 0): Promise<Taken> {
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<Taken>((resolve) => this.#taking.set(id, resolve));
    this.#send({ kind: 'take', id, key, max, window, until, n, debt });
    const taken = await withTimeout(TAKE_TIMEOUT_MS, answer);
    this.#taking.delete(id);
    if (taken === LATE) throw new StateUnavailable('the primary process does not answer');
    return taken;
  }

  taken(id: number, taken: Taken): void {
    this.#taking.get(id)?.(taken);
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
