import type { Log, Services } from '../../plugins-sdk/index.ts';
import { MemoryArea, type StateArea, type StateKey, StateUnavailable } from '../../plugins-sdk/state.ts';

/** What became of a payment, as far as this service knows. */
export type Fate =
  /** On chain: it buys a request, of which no end is known. */
  | 'redeemed'
  | 'answered'
  | 'given back'
  | 'released'
  /** Given back as often as it may be; its last request failed. */
  | 'used up'
  /** Standard payments: the facilitator is asked, and has not answered. */
  | 'settling'
  | 'settled'
  | 'not settled'
  /** Nobody could tell whether it was taken. */
  | 'unknown';

/** A payment and its last request, for operators; what counts is its mark among the payments. */
export interface PaymentRecord {
  /** Under which its mark stands. */
  readonly payment: string;
  /** Of its last request's mark; records of an earlier release have none. */
  readonly token?: string | undefined;
  readonly fate: Fate;
  /** Epoch milliseconds at which its last request began to use it. */
  readonly since: number;
  readonly requestId: string;
  /** `<api>/<endpoint>` */
  readonly endpoint: string;
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly payer: string;
  readonly nonce?: string | undefined;
  readonly transaction?: string | undefined;
  readonly recipient?: string | undefined;
  /** Unix seconds. */
  readonly validBefore?: string | undefined;
}

/** Milliseconds for which a payment is remembered at least, and where its end is not known. */
const FINISHED_TTL_MS = 3_600_000;
const UNFINISHED_TTL_MS = 30 * 86_400_000;
/** Payments that are remembered under one nonce, which each payer chooses, and open ones whose nonces begin alike. */
const MOST_ALIKE = 20;
const MOST_OPEN = 1000;
/** Tries to write among others who write: each fails only where another succeeded. */
const TRIES = 20;

/** Payments by transaction and by nonce, and those of them whose end is not known. */
export class PaymentRecords {
  readonly #area: StateArea;
  readonly #log: Log;

  /** @param type of auth. @param key under which they are kept where no engine is. */
  constructor(
    { stateEngine, states, now, log }: Pick<Services, 'stateEngine' | 'states' | 'now' | 'log'>,
    type: string,
    key: StateKey<MemoryArea>,
  ) {
    // Apart from the marks: where there is no room for records, payments are taken all the same.
    this.#area = stateEngine?.area(`${type} records`) ?? states.keep(key, '', () => new MemoryArea({ now }));
    this.#log = log;
  }

  /** What is known under a transaction or a nonce. */
  async find(id: string): Promise<readonly PaymentRecord[]> {
    return listIn<PaymentRecord>(await this.#area.get(keyOf(id)));
  }

  /** What is known of payments that were {@link open open} last. */
  async unfinished(): Promise<readonly PaymentRecord[]> {
    const keys = Array.from({ length: 256 }, (_, byte) => openKey(`0x${byte.toString(16).padStart(2, '0')}`));
    const found: PaymentRecord[] = [];
    for (const key of keys) found.push(...listIn<PaymentRecord>(await this.#area.get(key)));
    return found;
  }

  /** Remembers a payment whose end is not known. What fails is told and costs nobody an answer. */
  open(record: PaymentRecord): Promise<void> {
    return this.#telling(record, [
      this.#put(record, UNFINISHED_TTL_MS),
      this.#change(openKey(idOf(record)), (list) => withRecord(list, record, MOST_OPEN), UNFINISHED_TTL_MS),
    ]);
  }

  /** Remembers how it ended. */
  close(record: PaymentRecord): Promise<void> {
    const others = (list: readonly PaymentRecord[]) => list.filter(({ payment }) => payment !== record.payment);
    return this.#telling(record, [
      this.#put(record, FINISHED_TTL_MS),
      this.#change(openKey(idOf(record)), others, UNFINISHED_TTL_MS),
    ]);
  }

  /** Remembers a payment that can have no open end on the chain. */
  note(record: PaymentRecord): Promise<void> {
    return this.#telling(record, [this.#put(record, record.fate === 'redeemed' ? UNFINISHED_TTL_MS : FINISHED_TTL_MS)]);
  }

  async #put(record: PaymentRecord, life: number): Promise<void> {
    const ids = new Set([record.nonce, record.transaction].flatMap((id) => id ?? []));
    const put = (list: readonly PaymentRecord[]) => withRecord(list, record, MOST_ALIKE);
    await Promise.all([...ids].map((id) => this.#change(keyOf(id), put, life)));
  }

  async #change(
    key: string,
    change: (list: readonly PaymentRecord[]) => readonly PaymentRecord[],
    ttl: number,
  ): Promise<void> {
    let text: string | undefined;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const list = change(listIn(text));
      const next = list.length === 0 ? undefined : JSON.stringify(list);
      const standing = await this.#area.compareAndSet(key, text, next, { ttl });
      if (standing === undefined) return;
      text = standing.value;
    }
    throw new StateUnavailable('the records of payments change all the time');
  }

  async #telling(record: PaymentRecord, work: readonly Promise<void>[]): Promise<void> {
    const ends = await Promise.allSettled(work);
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed === undefined) return;
    const { requestId, payer, nonce, transaction, fate } = record;
    const fields = { requestId, payer, nonce, transaction, fate, error: String(failed.reason) };
    this.#log.warn('what became of a payment could not be recorded', fields);
  }
}

/** Payments on chain are known by their transaction, others by their nonce from the beginning. */
function idOf({ nonce, transaction = '' }: PaymentRecord): string {
  return nonce ?? transaction;
}

const keyOf = (id: string) => `record ${id.toLowerCase()}`;
const openKey = (id: string) => `open ${id.slice(2, 4).toLowerCase()}`;

function withRecord(list: readonly PaymentRecord[], record: PaymentRecord, most: number): readonly PaymentRecord[] {
  return [...list.filter(({ payment }) => payment !== record.payment), record].slice(-most);
}

/** What this class has written. */
function listIn<T = PaymentRecord>(text = '[]'): readonly T[] {
  return JSON.parse(text);
}
