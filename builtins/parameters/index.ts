import {
  type CheckContext,
  declaredParameters,
  type EndpointDraft,
  keys,
  receiptKey,
  reservedParameters,
  strictKey,
} from '../../plugins-sdk/config.ts';
import { definePlugin, type Endpoint, type Json, perEndpoint } from '../../plugins-sdk/index.ts';
import { parameterSchema } from '../shared/parameter-schema.ts';
import { warnOnce } from '../shared/warn-once.ts';
import { checkEndpoint } from './checks.ts';
import { describeParameters } from './openapi.ts';
import { compileRequest } from './outgoing.ts';
import { refuseNested } from './placement.ts';
import { plainHttp } from './plain-http.ts';
import { type Prepared, questionFor, requestOf, valuesOf } from './question.ts';
import { schemaInPlace } from './schema-in-place.ts';

/** What the endpoint ID commits to: names always, values unless they are secret. */
function identityOf(endpoint: EndpointDraft, context: CheckContext): Json {
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return declaredParameters(endpoint, context)
    .sort((a, b) => compare(a.name, b.name) || compare(a.in, b.in))
    .map(({ name, in: place, required, secret, fixed, default: fallback }) => ({
      name,
      in: place,
      required,
      secret,
      ...(fixed === undefined || secret ? {} : { fixed }),
      ...(fallback === undefined || secret ? {} : { default: fallback }),
    }));
}

/** What a strict endpoint takes: what is free to give, as OpenAPI shows it. */
function knownNames(endpoint: Endpoint): ReadonlySet<string> | undefined {
  if (strictKey.of(endpoint) !== true) return undefined;
  const free = (keys.parameters.of(endpoint) ?? []).filter(({ fixed }) => fixed === undefined);
  return new Set([...free.map(({ name }) => name), ...reservedParameters(endpoint)]);
}

const NESTED =
  'a list or an object was given outside a body, where it counts as "1,2" or "[object Object]": strictParameters: true refuses it';

/** Makes the question of a request's parameters: resolves, checks and places them. */
export const parameters = definePlugin({
  name: 'parameters',
  required: true,
  keys: [keys.parameters, strictKey],
  identity: { parameters: identityOf },
  check: (context) => [
    ...context.endpoints.flatMap((endpoint) => checkEndpoint(endpoint, context)),
    ...plainHttp(context),
  ],
  openapi: () => ({ operation: describeParameters }),
  setup({ endpoints, log }) {
    const warnNested = warnOnce({ log }, NESTED);
    const prepared = perEndpoint(endpoints, (endpoint): Prepared => {
      const declared = (keys.parameters.of(endpoint) ?? []).map(
        ({ in: place = 'query', required = false, ...rest }) => {
          return { ...rest, in: place, required, secret: rest.secret ?? false };
        },
      );
      const misfits = declared.map((parameter) =>
        parameter.schema === undefined || parameter.fixed !== undefined
          ? undefined
          : parameterSchema({ schema: schemaInPlace(parameter.in, parameter.schema), secret: parameter.secret }, '')
              .misfit,
      );
      return {
        id: endpoint.id,
        declared,
        misfits,
        known: knownNames(endpoint),
        reserved: reservedParameters(endpoint),
        hasReceipts: receiptKey.of(endpoint) === true,
        request: compileRequest(
          endpoint,
          declared,
          strictKey.of(endpoint) === true ? refuseNested : (parameter) => warnNested(endpoint, { parameter }),
        ),
      };
    });
    return {
      hooks: {
        // Clients hear of these before they hear of reserved parameters.
        validate: (given, exchange) => {
          const known = prepared(exchange.endpoint);
          if (known.reserved.length > 0) requestOf(known, valuesOf(known, given, exchange));
        },
        prepare: (parameters, variation, exchange) =>
          questionFor(prepared(exchange.endpoint), parameters, variation, exchange),
      },
    };
  },
});
