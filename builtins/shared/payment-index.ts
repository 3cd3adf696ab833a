/** Which payments have no known end, and which belong to a transaction or a nonce. */
import { randomId } from '../../lib/eth/random-id.ts';
import { jsonIn } from '../../lib/json/value.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import { type StateArea, update } from '../../plugins-sdk/state.ts';
import type { Mark } from './payment-mark.ts';

/** Milliseconds for which a payment is remembered whose end is not known. */
export const OPEN_TTL_MS = 30 * 86_400_000;

/** Lists over which open payments are spread, so that few who write meet. */
const LISTS = 256;
const MOST_OPEN = 1000;
/** Payments that are known by one id: payers choose their nonces. */
const MOST_ALIKE = 20;

type Names = readonly string[];

/** One request's use of a payment. */
interface Use {
  readonly payment: string;
  /** Random hex. */
  readonly token: string;
}

/** @param ids apart from the marks: without room for them payments are taken all the same. */
export function paymentIndex(marks: StateArea, ids: StateArea, log: Log) {
  const list = ({ token }: Use, change: (entries: Names) => Names) =>
    changeList(marks, `open ${Number(token.slice(0, 4)) % LISTS}`, change);
  return {
    /** Lists a payment as one of which no end may be known, once for each request that wants it. */
    begin: (use: Use) => list(use, (entries) => [...entries, entryOf(use)].slice(-MOST_OPEN)),
    end: (use: Use) => list(use, (entries) => entries.filter((entry) => entry !== entryOf(use))),
    open: async (): Promise<Names> => {
      const names: string[] = [];
      for (let index = 0; index < LISTS; index += 1)
        names.push(...listIn(await marks.get(`open ${index}`)).map(paymentOf));
      return names;
    },
    /**
     * Has an ended payment found by its transaction and nonce. Where that fails, it is told and costs nobody an answer.
     * @param life milliseconds.
     */
    add: async ({ nonce, transaction, requestId }: Mark, payment: string, life: number): Promise<void> => {
      // A new entry each time: what changes nothing would not be remembered for longer.
      const own = entryOf({ payment, token: randomId() });
      const others = (entries: Names) => entries.filter((entry) => paymentOf(entry) !== payment);
      const added = (entries: Names) => [...others(entries), own].slice(-MOST_ALIKE);
      for (const id of [nonce ?? [], transaction ?? []].flat())
        await changeList(ids, keyOf(id), added, life).catch((error: unknown) =>
          log.warn('a payment could not be indexed', { requestId, id, error: String(error) }),
        );
    },
    names: async (id: string): Promise<Names> => listIn(await ids.get(keyOf(id))).map(paymentOf),
  };
}

const keyOf = (id: string) => `of ${id.toLowerCase()}`;
const entryOf = ({ payment, token }: Use) => `${payment} ${token}`;
const paymentOf = (entry: string) => entry.slice(0, entry.lastIndexOf(' '));

async function changeList(area: StateArea, key: string, change: (names: Names) => Names, ttl = OPEN_TTL_MS) {
  const text = (seen: string | undefined) => {
    const names = change(listIn(seen));
    return names.length === 0 ? undefined : JSON.stringify(names);
  };
  // The others of a list may have to be found for longer.
  await update(area, key, text, { ttl, keepLonger: true });
}

/** What was written here; nothing of what others wrote. */
function listIn(text = '[]'): Names {
  const list = jsonIn(text);
  return Array.isArray(list) ? list : [];
}
