import {
  type CheckContext,
  declaredParameters,
  type EndpointDraft,
  keys,
  strictKey,
} from '../../plugins-sdk/config.ts';
import { definePlugin, type Json, type Parameters, perEndpoint } from '../../plugins-sdk/index.ts';
import { warnOnce } from '../shared/warn-once.ts';
import { asWritten } from '../shared/written-parameters.ts';
import { bodyType, withForm } from './body.ts';
import { checkEndpoint } from './checks.ts';
import { describeParameters } from './openapi.ts';
import { prepare, questionFor, requestOf, resolvedOf } from './question.ts';

/** Returns the parameters as the endpoint ID commits to them: names always, values unless they are secret. */
function identityOf(endpoint: EndpointDraft, context: CheckContext): Json {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return [...withForm(endpoint, declaredParameters(endpoint, context))]
    .sort((a, b) => compare(a.name, b.name) || compare(a.in, b.in))
    .map(({ name, in: place, required, secret, fixed, default: fallback, map, style, nested, form }) => ({
      ...{ name, in: place, required, secret },
      ...(!secret && given({ fixed, default: fallback, map })),
      ...given({ style, nested: nested || undefined, form }),
    }));
}

function given(members: Readonly<Record<string, Json | undefined>>): Parameters {
  return Object.fromEntries(
    Object.entries(members).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

const NESTED =
  'a list or an object was given outside a body, where it counts as "1,2" or "[object Object]": strictParameters: true refuses it';

/** Makes the question from a request's parameters: resolves, checks and places them. */
export const parameters = definePlugin({
  name: 'parameters',
  required: true,
  keys: [keys.parameters, bodyType, strictKey],
  identity: { parameters: identityOf },
  check: (context) => context.endpoints.flatMap((endpoint) => [...checkEndpoint(endpoint, context)]),
  openapi: () => ({ operation: describeParameters }),
  setup({ endpoints, log }) {
    const warnNested = warnOnce({ log }, NESTED);
    const prepared = perEndpoint(endpoints, (endpoint) =>
      prepare(endpoint, (parameter) => warnNested(endpoint, { parameter })),
    );
    return {
      hooks: {
        // Faults of these parameters are reported before those of reserved ones.
        validate: (given, exchange) => {
          const known = prepared(exchange.endpoint);
          if (known.reserved.length > 0) requestOf(known, resolvedOf(known, given, asWritten(given, exchange)));
        },
        prepare: (parameters, variation, exchange) =>
          questionFor(prepared(exchange.endpoint), parameters, variation, exchange),
      },
    };
  },
});
