import { SignedResponse } from '../../plugins-sdk/index.ts';
import { requireAnswer, type StateArea, type Wanted } from '../../plugins-sdk/state.ts';
import type { Found } from './entries.ts';

/** Bytes of answers that this process has in the engine at most: it is not only theirs. */
const MOST_BYTES = 64 * 1024 * 1024;

/** An answer and the milliseconds for which it is kept. */
export type Kept = Omit<Found<SignedResponse>, 'isGood'>;

/** Under what an answer is kept, for how many milliseconds, and what it answers. */
export interface Place extends Wanted {
  /** That of another signer or config is another one. */
  readonly key: string;
  readonly maxAge: number;
}

/** Cached answers of all processes that share an engine: what one has stored, all give. */
export class ReplicaAnswers {
  readonly #area: StateArea;
  readonly #node: string;
  readonly #now: () => number;
  /** What this process has in the engine, the oldest first. */
  readonly #stored = new Map<string, { readonly until: number; readonly size: number }>();
  #bytes = 0;

  /** @param service whose answers they are, and its clock in epoch milliseconds. */
  constructor(area: StateArea, service: { readonly node: string; now(): number }) {
    this.#area = area;
    this.#node = service.node;
    this.#now = () => service.now();
  }

  /** The answer of another process; nothing where the engine is away. */
  async find(place: Place): Promise<Kept | undefined> {
    const text = await this.#area.get(place.key).catch(() => undefined);
    return text === undefined ? undefined : this.#read(text, place);
  }

  /** Stores an answer. @returns that of another process, which was first. */
  async store({ json }: SignedResponse, place: Place): Promise<Kept | undefined> {
    const { key, maxAge: ttl } = place;
    if (!this.#hasRoom(key, json.length, ttl)) return undefined;
    const stored = this.#area.compareAndSet(key, undefined, `${this.#now()} ${json}`, { ttl });
    const other = (await stored.catch(() => undefined))?.value;
    return other === undefined ? undefined : this.#read(other, place);
  }

  #hasRoom(key: string, size: number, maxAge: number): boolean {
    const now = performance.now();
    for (const [known, entry] of this.#stored) {
      if (known !== key && entry.until > now) break;
      this.#stored.delete(known);
      this.#bytes -= entry.size;
    }
    if (this.#bytes + size > MOST_BYTES) return false;
    this.#stored.set(key, { until: now + maxAge, size });
    this.#bytes += size;
    return true;
  }

  /**
   * How old it is, its maker's clock says, which may differ from this one's; that it is not too old, the engine's does. One that is
   * no answer to this question, or of this clock's future, counts as none.
   */
  #read(text: string, { maxAge, ...wanted }: Place): Kept | undefined {
    const [madeAt = ''] = text.split(' ', 1);
    const left = maxAge - (this.#now() - Number(madeAt));
    const value = this.#answerIn(text.slice(madeAt.length + 1), wanted);
    return value && { value, ttl: Math.min(Math.max(Number.isFinite(left) ? left : 1, 1), maxAge) };
  }

  #answerIn(json: string, wanted: Wanted): SignedResponse | undefined {
    try {
      const answer = SignedResponse.parse(json);
      requireAnswer(answer, wanted, { signers: [this.#node], now: this.#now });
      return answer;
    } catch {
      return undefined;
    }
  }
}
