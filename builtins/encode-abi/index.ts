import { closedObject, keys, optionalKey } from '../../plugins-sdk/config.ts';
import {
  type ApiResponse,
  ContextKey,
  definePlugin,
  type Encoded,
  type Json,
  Refusal,
  Type,
  toHex,
} from '../../plugins-sdk/index.ts';
import { BudgetError, fullBudget, type Match, PathError } from '../shared/json-path/index.ts';
import type { PathValues } from '../shared/json-path/placeholders.ts';
import { warnOnce } from '../shared/warn-once.ts';
import { check, recommend } from './check.ts';
import type { Combine } from './combine.ts';
import type { Field } from './lists.ts';
import { abiPart } from './openapi.ts';
import { choose, type Plan, prepare } from './plan.ts';
import { encodeValues, exactDigits, type Item, ValueError } from './values.ts';

/** The config key `encoding` with its full schema; other plugins read it as `keys.encoding`. */
const encodingKey = optionalKey(
  'endpoint',
  'encoding',
  closedObject(
    {
      type: Type.String({ minLength: 1, description: 'Solidity type, a comma-separated list of them, or *' }),
      path: Type.String({ minLength: 1, description: 'JSONPath, a comma-separated list of them, or *' }),
      times: Type.Optional(Type.String({ description: 'Multiplier such as 1e18, a list of them, or *' })),
      combine: Type.Optional(
        Type.Enum(['mean', 'median', 'min', 'max'], {
          description: 'Makes one number of all that the paths find; default none',
        }),
      ),
      exact: Type.Optional(
        Type.Boolean({ description: 'Refuses numbers that the integer type would cut; default false' }),
      ),
    },
    'What is extracted and ABI-encoded; without it the JSON is signed',
  ),
);

const CUT_TO_ZERO =
  'a value other than zero is signed as 0, since integers hold no fraction: set a larger times, or exact: true to refuse it';

/** How the values of one response are extracted and encoded. */
interface Encoding {
  readonly plan: Plan;
  /** The fields that the requester has chosen. */
  readonly delegated: readonly Field[];
  /** How all values that the paths find become one; undefined: the first value of each path is encoded. */
  readonly combine: Combine | undefined;
  /** The values of the parameters in its paths. */
  readonly values: PathValues | undefined;
  /** Called when a number other than zero is cut to 0. */
  onCutToZero(): void;
}

/** Extracts and encodes the values of an upstream response. @throws Refusal 502; 400 if a client's path costs too much. */
function encode(encoding: Encoding, { data, text }: ApiResponse): Encoded {
  if (text === '') throw new Refusal(502, 'API returned no data to encode', { failureClass: 'encode' });
  const { combine, onCutToZero } = encoding;
  try {
    const found = find(encoding, data);
    const matches = found.map(({ match }) => match);
    const tokens = text === undefined ? [] : exactDigits(matches, text);
    // No spread of the plan: that would cost more time than the encoding.
    const items = found.map(({ match, planned: { type, times, exact } }, i): Item => {
      return { type, times, exact, value: match.value, token: tokens[i], onCutToZero };
    });
    const value = toHex(encodeValues(items, combine));
    return { bytes: value, field: 'data', value };
  } catch (cause) {
    throw refusalOf(cause, encoding);
  }
}

/** Finds the values of a plan. @throws Refusal 502 if a path finds nothing, PathError */
function find({ plan, delegated, values, combine }: Encoding, data: Json) {
  const budget = fullBudget();
  const found: { match: Match; planned: Plan[number] }[] = [];
  for (const planned of plan) {
    const { path } = planned;
    const before = found.length;
    if (combine === undefined) {
      const match = path.first(data, budget, values);
      if (match !== undefined) found.push({ match, planned });
    } else for (const match of path.all(data, budget, values)) found.push({ match, planned });
    if (found.length > before) continue;
    const isClients = delegated.includes('path');
    // A client's path stays out of the log.
    const reason = isClients ? 'the path that the client has chosen finds nothing' : undefined;
    throw new Refusal(502, `No value found at path: ${path.text}`, blame(reason, isClients));
  }
  return found;
}

function refusalOf(cause: unknown, { delegated }: Encoding): unknown {
  const isPathChosen = delegated.includes('path');
  if (cause instanceof BudgetError && isPathChosen)
    return new Refusal(400, 'Invalid `_path` request parameter', { reason: cause.message });
  if (cause instanceof PathError) return new Refusal(502, 'API call failed', blame(cause.message, isPathChosen));
  if (!(cause instanceof ValueError)) return cause;
  const isClients = isPathChosen || delegated.includes('type') || (delegated.includes('times') && cause.isOfFactor);
  return new Refusal(502, 'API call failed', blame(cause.message, isClients));
}

/** Says whose fault a refusal is: operators have nothing to mend if a client's choice is wrong. */
function blame(reason: string | undefined, isClients: boolean) {
  return { reason, failureClass: isClients ? 'requester' : 'encode', fault: !isClients };
}

/** Extracts values by JSONPath and ABI-encodes them, as the operator pinned it or the requester chose. */
export const encodeAbiPlugin = definePlugin({
  name: 'encode-abi',
  keys: [encodingKey],
  identity: {
    encoding: (endpoint) => {
      const encoding = keys.encoding.of(endpoint);
      if (encoding === undefined) return null;
      const { type, path, times = null, combine } = encoding;
      return { type, path, times, ...(combine !== undefined && { combine }) };
    },
  },
  check: ({ endpoints }) => endpoints.flatMap((endpoint) => [...check(endpoint)]),
  recommend,
  openapi: () => abiPart,
  setup({ endpoints, log }) {
    const warnOfZero = warnOnce({ log }, CUT_TO_ZERO);
    const prepared = new Map(endpoints.map((endpoint) => [endpoint, prepare(endpoint)]));
    const chosen = new ContextKey<Plan>('encoding plan');
    return {
      hooks: {
        validate: (parameters, exchange) => {
          const known = prepared.get(exchange.endpoint);
          if (known !== undefined && known.plan === undefined)
            chosen.set(exchange, choose(known, parameters, exchange));
        },
        encode: (response, { request: { pathValues } }, exchange) => {
          const known = prepared.get(exchange.endpoint);
          if (known === undefined) return undefined;
          const plan = known.plan ?? chosen.require(exchange);
          const onCutToZero = () => warnOfZero(exchange.endpoint);
          const { delegated, pinned } = known;
          return encode({ plan, delegated, combine: pinned.combine, values: pathValues, onCutToZero }, response);
        },
      },
    };
  },
});
