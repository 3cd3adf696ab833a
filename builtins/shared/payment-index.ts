/** Indexes payments: those without a known end, and those of a transaction or nonce. */
import { randomId } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import { type StateArea, StateUnavailable, update } from '../../plugins-sdk/state.ts';
import { isOpen, type Mark, markIn, type Ticket } from './payment-mark.ts';

/** Milliseconds for which a payment without a known end is remembered. */
export const OPEN_TTL_MS = 30 * 86_400_000;

/** The number of lists that share the open payments, so that concurrent writes rarely meet. */
const LISTS = 256;
const MOST_OPEN = 1000;
/** The most payments under one ID; there may be several, because payers choose their nonces. */
const MOST_ALIKE = 20;

type Names = readonly string[];

/** One request's use of a payment; its token is random hex. */
type Use = Pick<Ticket, 'payment' | 'token'>;

/** Makes the index. @param ids separate from the marks, so that payments are still taken when there is no room for IDs. */
export function paymentIndex(marks: StateArea, ids: StateArea, log: Log) {
  const list = ({ token }: Use, change: (entries: Names) => Names) =>
    changeList(marks, `open ${Number(token.slice(0, 4)) % LISTS}`, change);
  /**
   * Lists a payment as one that may be open, once for each request that tries to hold it. In a full list the oldest one makes
   * room, if its end is known. An open payment that is not listed would be lost to operators.
   * @param ended the oldest one, whose end is known. @throws StateUnavailable if there is no room.
   */
  const begin = async (use: Use, ended?: string): Promise<void> => {
    const names = await list(use, (entries) => {
      const kept = entries.filter((entry) => entry !== ended);
      return kept.length < MOST_OPEN ? [...kept, entryOf(use)] : entries;
    });
    if (names.includes(entryOf(use))) return;
    const [oldest = ''] = names;
    const mark = markIn(await marks.get(paymentOf(oldest)));
    if (mark && isOpen(mark)) throw new StateUnavailable('no room for another payment without a known end');
    await begin(use, oldest);
  };
  return {
    begin,
    end: (use: Use) => list(use, (entries) => entries.filter((entry) => entry !== entryOf(use))),
    open: async (): Promise<Names> => {
      const lists = Array.from({ length: LISTS }, (_, index) => marks.get(`open ${index}`));
      return (await Promise.all(lists)).flatMap((text) => listIn(text).map(paymentOf));
    },
    /**
     * Indexes an ended payment by its transaction and nonce. A failure is only logged: the client gets its answer.
     * @param life milliseconds for which it is indexed.
     */
    add: async ({ nonce, transaction, requestId }: Mark, payment: string, life: number): Promise<void> => {
      // The entry is new each time, because an unchanged list would keep its old lifetime.
      const own = entryOf({ payment, token: randomId() });
      const others = (entries: Names) => entries.filter((entry) => paymentOf(entry) !== payment);
      const added = (entries: Names) => [...others(entries), own].slice(-MOST_ALIKE);
      const write = (id: string) =>
        changeList(ids, keyOf(id), added, life).catch((error: unknown) =>
          log.warn('a payment could not be indexed', { requestId, id, error: String(error) }),
        );
      await Promise.all([nonce ?? [], transaction ?? []].flat().map(write));
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
  // Other entries of the list may have to be kept for longer.
  return listIn(await update(area, key, text, { ttl, keepLonger: true }));
}

/** Reads a list; a text that another program wrote counts as empty. */
function listIn(text = '[]'): Names {
  const list = jsonIn(text);
  return Array.isArray(list) && list.every((entry) => typeof entry === 'string') ? list : [];
}
