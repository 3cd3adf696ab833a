/** Which payments have no known end, and which belong to a transaction or a nonce. */
import { jsonIn } from '../../lib/json/value.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import { type StateArea, update } from '../../plugins-sdk/state.ts';

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
        for (const entry of listIn(await marks.get(`open ${index}`)))
          names.push(entry.slice(0, entry.lastIndexOf(' ')));
      return names;
    },
    /** Has a payment found by a transaction or a nonce. Where that fails, it is told and costs nobody an answer. */
    add: async (id: string, payment: string, requestId: string): Promise<void> => {
      const added = (names: Names) => [...names.filter((name) => name !== payment), payment].slice(-MOST_ALIKE);
      await changeList(ids, keyOf(id), added).catch((error: unknown) =>
        log.warn('a payment could not be indexed', { requestId, id, error: String(error) }),
      );
    },
    names: async (id: string): Promise<Names> => listIn(await ids.get(keyOf(id))),
  };
}

const keyOf = (id: string) => `of ${id.toLowerCase()}`;
const entryOf = ({ payment, token }: Use) => `${payment} ${token}`;

async function changeList(area: StateArea, key: string, change: (names: Names) => Names): Promise<void> {
  const text = (seen: string | undefined) => {
    const names = change(listIn(seen));
    return names.length === 0 ? undefined : JSON.stringify(names);
  };
  await update(area, key, text, { ttl: OPEN_TTL_MS });
}

/** What was written here; nothing of what others wrote. */
function listIn(text = '[]'): Names {
  const list = jsonIn(text);
  return Array.isArray(list) ? list : [];
}
