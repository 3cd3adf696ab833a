import {
  type CheckContext,
  type DeclaredParameter,
  declaredParameters,
  definePlugin,
  type Endpoint,
  type EndpointDraft,
  type Exchange,
  inexactParameters,
  type Json,
  keys,
  type Parameters,
  perEndpoint,
  Refusal,
  type RequestParts,
  reservedParameters,
  resolvedParameters,
  strictKey,
} from '../../plugins-sdk/index.ts';
import { checkEndpoint } from './checks.ts';
import { describeParameters } from './openapi.ts';
import { compilePlacement, type Placement } from './placement.ts';
import { plainHttp } from './plain-http.ts';
import { type Misfit, parameterSchema } from './schema.ts';

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

interface Prepared {
  readonly declared: readonly Pick<DeclaredParameter, 'name' | 'in' | 'required' | 'fixed' | 'default' | 'secret'>[];
  readonly placement: Placement;
  /** By parameter; those without a schema take anything. */
  readonly misfits: readonly (Misfit | undefined)[];
  /** The names that a request may have; without it any. */
  readonly known: ReadonlySet<string> | undefined;
}

type Values = readonly (Json | undefined)[];

/** `fixed`, else the client's value, else `default`; `null` counts as not given, except in a body. */
function resolve({ declared }: Prepared, given: Parameters): Values {
  return declared.map(({ name, in: place, fixed, default: fallback }) => {
    if (fixed !== undefined) return fixed;
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    return value === undefined || (value === null && place !== 'body') ? fallback : value;
  });
}

function requireAll({ declared }: Prepared, values: Values): void {
  const missing = declared.filter(({ required }, index) => required && values[index] === undefined);
  if (missing.length === 0) return;
  const names = [...new Set(missing.map(({ name }) => name))];
  throw new Refusal(400, `Missing required parameter(s): ${names.join(', ')}`);
}

/** Refuses numbers that a double rounds: the upstream would be asked for something else than the client wants. */
function requireExact({ declared }: Prepared, exchange: Exchange): void {
  const inexact = inexactParameters.get(exchange);
  const wrong = inexact && declared.find(({ name, fixed }) => fixed === undefined && inexact.has(name));
  if (wrong) throw new Refusal(400, `Invalid parameter: ${wrong.name} (send this number as a string)`);
}

function requireFit({ declared, misfits }: Prepared, values: Values): void {
  for (const [index, misfit] of misfits.entries()) {
    const why = values[index] === undefined ? undefined : misfit?.(values[index]);
    if (why !== undefined) throw new Refusal(400, `Invalid parameter: ${declared[index]?.name} (${why})`);
  }
}

/** Characters of an unknown name that a refusal repeats. */
const NAMED = 64;

function requireKnown({ known }: Prepared, given: Parameters): void {
  const unknown = known && Object.keys(given).find((name) => !known.has(name));
  if (unknown === undefined) return;
  const named = unknown.length > NAMED ? `${unknown.slice(0, NAMED)}…` : unknown;
  throw new Refusal(400, `Unknown parameter: ${named}`);
}

/** @throws Refusal 400 for a value that does not fit its schema or its place */
function placed(prepared: Prepared, values: Values): RequestParts {
  requireFit(prepared, values);
  return prepared.placement(values);
}

/** What plugins may see and change. */
function visibleOf({ declared }: Prepared, values: Values): Parameters {
  const visible: Record<string, Json> = {};
  for (let index = 0; index < declared.length; index++) {
    const parameter = declared[index];
    const value = values[index];
    if (parameter === undefined || value === undefined || parameter.fixed !== undefined || parameter.secret) continue;
    // Assigned, it would set the prototype.
    if (parameter.name === '__proto__') Object.defineProperty(visible, parameter.name, { value, enumerable: true });
    else visible[parameter.name] = value;
  }
  return Object.freeze(visible);
}

function validate(prepared: Prepared, exchange: Exchange): Parameters {
  const { declared } = prepared;
  requireKnown(prepared, exchange.parameters);
  const values = resolve(prepared, exchange.parameters);
  requireAll(prepared, values);
  requireExact(prepared, exchange);
  const parts = placed(prepared, values);
  const visible = visibleOf(prepared, values);
  resolvedParameters.set(exchange, {
    values,
    place: (changed) => {
      if (changed === visible) return parts;
      const given = resolve(prepared, changed);
      const merged = given.map((value, index) => (declared[index]?.secret ? values[index] : value));
      requireAll(prepared, merged);
      return placed(prepared, merged);
    },
  });
  return visible;
}

/** Resolves, checks and places the parameters of a request. */
export const parameters = definePlugin({
  name: 'parameters',
  budget: 'none',
  required: true,
  keys: [keys.parameters, strictKey],
  identity: { parameters: identityOf },
  check: (context) => [
    ...context.endpoints.flatMap((endpoint) => checkEndpoint(endpoint, context)),
    ...plainHttp(context),
  ],
  openapi: () => ({ operation: describeParameters }),
  setup({ endpoints }) {
    const prepared = perEndpoint(endpoints, (endpoint): Prepared => {
      const declared = (keys.parameters.of(endpoint) ?? []).map(
        ({ in: place = 'query', required = false, ...rest }) => {
          return { ...rest, in: place, required, secret: rest.secret ?? false };
        },
      );
      const placement = compilePlacement(keys.path.of(endpoint) ?? '', declared);
      const misfits = declared.map(({ schema, secret, fixed }) =>
        schema === undefined || fixed !== undefined ? undefined : parameterSchema({ schema, secret }, '').misfit,
      );
      return { declared, placement, misfits, known: knownNames(endpoint) };
    });
    return { hooks: { validate: (_, exchange) => validate(prepared(exchange.endpoint), exchange) } };
  },
});
