import {
  type CheckContext,
  checkHeaderName,
  type DeclaredParameter,
  declaredParameters,
  definePlugin,
  type EndpointDraft,
  type Exchange,
  error,
  type Finding,
  inexactParameters,
  isRefusal,
  type Json,
  keys,
  type Parameters,
  perEndpoint,
  Refusal,
  resolvedParameters,
  warning,
} from '../../plugins-sdk/index.ts';
import { describeParameters } from './openapi.ts';
import { compilePlacement, type Placement } from './placement.ts';
import { plainHttp } from './plain-http.ts';

const RESERVED = /^_(type|path|times)$/;

function checkEndpoint(endpoint: EndpointDraft, context: CheckContext): Finding[] {
  const declared = declaredParameters(endpoint, context);
  const placeholders = placeholdersOf(endpoint);
  const seen = new Set<string>();
  const findings = declared.flatMap((parameter) => {
    const { name, at, in: place } = parameter;
    const key = `${place} ${place === 'header' ? name.toLowerCase() : name}`;
    const double = seen.has(key);
    seen.add(key);
    return [
      ...(double ? [error(at, `there are two ${place} parameters named "${name}"`)] : []),
      ...(RESERVED.test(name) ? [error(`${at}.name`, `"${name}" is a reserved parameter`)] : []),
      ...(parameter.required && parameter.default !== undefined
        ? [error(at, 'is both required and has a default: choose one')]
        : []),
      ...(place === 'header' ? checkHeaderName(`${at}.name`, name) : []),
      ...(place === 'cookie' && !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)
        ? [error(`${at}.name`, 'is no valid cookie name')]
        : []),
      ...(place === 'path' && /[/?]/.test(name) ? [error(`${at}.name`, 'a path parameter must hold no / or ?')] : []),
      ...(place === 'path' && !placeholders.has(name)
        ? [error(`${at}.name`, `the path has no placeholder {${name}}`)]
        : []),
    ];
  });
  return [
    ...findings,
    ...checkCookies(endpoint, declared),
    ...checkTaken(endpoint, declared),
    ...checkPath(endpoint, declared),
  ];
}

function placeholdersOf(endpoint: EndpointDraft): ReadonlySet<string> {
  return new Set([...(keys.path.of(endpoint) ?? '').matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name ?? ''));
}

function checkPath(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Finding[] {
  const at = `${endpoint.path}.path`;
  const path = keys.path.of(endpoint) ?? '';
  const inPath = new Set(declared.filter((parameter) => parameter.in === 'path').map(({ name }) => name));
  const orphans = [...placeholdersOf(endpoint)].filter((name) => !inPath.has(name));
  const literal = path.replace(/\{[^{}]*\}/g, '');
  return [
    ...(orphans.length === 0 ? checkValues(endpoint, declared) : []),
    ...(/^[^/?]/.test(path)
      ? [warning(at, `asks the same as /${path}, but makes another endpoint ID: write /${path}`)]
      : []),
    ...(/[{}]/.test(literal) ? [error(at, 'holds a brace without its counterpart')] : []),
    ...orphans.map((name) => error(at, `the placeholder {${name}} has no parameter with in: path`)),
  ];
}

/** All cookies travel in one header, which somebody else may have taken. */
function checkCookies(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Finding[] {
  const isCookie = (name: string) => name.toLowerCase() === 'cookie';
  const cookies = declared.filter((parameter) => parameter.in === 'cookie');
  const header = declared.find((parameter) => parameter.in === 'header' && isCookie(parameter.name));
  const both = header !== undefined && cookies.length > 0;
  const taken = Object.keys(keys.headers.of(endpoint) ?? {}).some(isCookie);
  return [
    ...(both ? [error(header.at, 'a header named Cookie leaves no room for parameters with in: cookie')] : []),
    ...(taken ? cookies.map(({ at }) => warning(at, 'is never sent: the headers of the API hold a Cookie')) : []),
  ];
}

/** What the operator pinned elsewhere wins, or travels beside it. */
function checkTaken(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Finding[] {
  const headers = new Set(Object.keys(keys.headers.of(endpoint) ?? {}).map((name) => name.toLowerCase()));
  const [, query = ''] = (keys.path.of(endpoint) ?? '').split('?');
  const pinned = new URLSearchParams(query);
  return declared.flatMap(({ at, name, in: place }) => [
    ...(place === 'header' && headers.has(name.toLowerCase())
      ? [warning(at, `is never sent: the headers of the API hold ${name}`)]
      : []),
    ...(place === 'query' && pinned.has(name)
      ? [warning(at, `is sent beside the ${name} that the path holds: the upstream gets both`)]
      : []),
  ]);
}

/** Finds fixed and default values that cannot be sent: they would fail every request and blame the client. */
function checkValues(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Finding[] {
  const place = compilePlacement(keys.path.of(endpoint) ?? '', declared);
  const isPlaceable = (index: number, value: Json) => {
    try {
      place(declared.map((_, i) => (i === index ? value : 'x')));
      return true;
    } catch (cause) {
      if (!isRefusal(cause)) throw cause;
      return false;
    }
  };
  // A path that is wrong by itself is wrong with any value.
  if (!isPlaceable(-1, null)) return [error(`${endpoint.path}.path`, 'must hold no . or .. segment')];
  return declared.flatMap(({ at, in: where, fixed, default: fallback }, index) => [
    ...(fixed === undefined || isPlaceable(index, fixed) ? [] : [error(`${at}.fixed`, `cannot be sent as ${where}`)]),
    ...(fallback === undefined || isPlaceable(index, fallback)
      ? []
      : [error(`${at}.default`, `cannot be sent as ${where}`)]),
  ]);
}

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

interface Prepared {
  readonly declared: readonly Pick<DeclaredParameter, 'name' | 'in' | 'required' | 'fixed' | 'default' | 'secret'>[];
  readonly placement: Placement;
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
  const values = resolve(prepared, exchange.parameters);
  requireAll(prepared, values);
  requireExact(prepared, exchange);
  const { declared, placement } = prepared;
  const parts = placement(values);
  const visible = visibleOf(prepared, values);
  resolvedParameters.set(exchange, {
    values,
    place: (changed) => {
      if (changed === visible) return parts;
      const given = resolve(prepared, changed);
      const merged = given.map((value, index) => (declared[index]?.secret ? values[index] : value));
      requireAll(prepared, merged);
      return placement(merged);
    },
  });
  return visible;
}

/** Resolves, checks and places the parameters of a request. */
export const parameters = definePlugin({
  name: 'parameters',
  budget: 'none',
  required: true,
  keys: [keys.parameters],
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
      return { declared, placement: compilePlacement(keys.path.of(endpoint) ?? '', declared) };
    });
    return { hooks: { validate: (_, exchange) => validate(prepared(exchange.endpoint), exchange) } };
  },
});
