import { closedObject, keys, optionalKey } from '../../plugins-sdk/config.ts';
import { ContextKey, definePlugin, Type } from '../../plugins-sdk/index.ts';
import { warnOnce } from '../shared/warn-once.ts';
import { check, recommend } from './check.ts';
import { encode } from './encode.ts';
import { abiPart } from './openapi.ts';
import { choose, type Plan, prepare } from './plan.ts';

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
