/**
 * `POST /batch` asks several endpoints in one request: `[{"endpointId": "0x…", "parameters": {…}}, …]`. The response is a
 * list of `{"status", "body"}` in the same order. Each item is authenticated, paid for and rate-limited like a request that the
 * client sends by itself, with the headers of the batch. The batch counts as one more request. An item with a number of more
 * digits than a double holds is refused: send it as text.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./batch.ts
 *       config:
 *         max: 10
 * ```
 */
import {
  type AskedResponse,
  definePlugin,
  type Parameters,
  Refusal,
  Type,
  withoutRoundedNumbers,
} from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  {
    max: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Requests of a batch; default 20' })),
    concurrency: Type.Optional(Type.Integer({ minimum: 1, description: 'Requests at a time; default 4' })),
  },
  { additionalProperties: false },
);

interface Item {
  readonly endpointId: string;
  readonly parameters?: Parameters;
}

/** @throws Refusal 400 */
function itemsOf(body: Uint8Array, max: number): readonly Item[] {
  const items = parse(body);
  if (!Array.isArray(items) || !items.every(isItem)) throw new Refusal(400, 'Batch must be a list of requests');
  if (items.length > max) throw new Refusal(400, `Batch holds more than ${max} requests`);
  return items;
}

function parse(body: Uint8Array): unknown {
  try {
    // With a rounded number the client would get a signed answer to another question.
    return JSON.parse(withoutRoundedNumbers(new TextDecoder().decode(body)));
  } catch {
    return undefined;
  }
}

function isItem(value: unknown): value is Item {
  const { endpointId, parameters = {} } = Object(value);
  return typeof endpointId === 'string' && Object(parameters) === parameters && !Array.isArray(parameters);
}

/** Does work for all items, a few at a time, and returns the results in the order of the items. */
async function each<T, R>(items: readonly T[], concurrency: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return results;
}

/** Returns a response as JSON. A JSON body is copied as it is, since every digit of it was signed. */
function shown({ status, headers, body }: AskedResponse): string {
  const isText = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return `{"status":${status},"body":${isText || body === '' ? JSON.stringify(body) : body}}`;
}

const unreadable: AskedResponse = { status: 400, headers: {}, body: '{"error":"Request body must be valid JSON"}' };

/** Returns the response to parameters that are nested too deep or hold a number that no double holds. @throws any other error. */
function refusalOf(error: unknown): AskedResponse {
  if (error instanceof TypeError) return unreadable;
  throw error;
}

export default definePlugin({
  name: 'batch',
  configSchema,
  setup({ ask }, { max = 20, concurrency = 4 }) {
    return {
      routes: [
        {
          method: 'POST',
          path: '/batch',
          admit: true,
          maxBody: 65_536,
          handle: async ({ body }, exchange) => {
            const responses = await each(itemsOf(body, max), concurrency, ({ endpointId, parameters = {} }) =>
              ask(endpointId, parameters, { as: exchange }).catch(refusalOf),
            );
            return { status: 200, body: `[${responses.map(shown).join(',')}]` };
          },
        },
      ],
    };
  },
});
