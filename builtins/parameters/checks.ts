import {
  type CheckContext,
  checkHeaderName,
  childPath,
  type DeclaredParameter,
  declaredParameters,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  warning,
} from '../../plugins-sdk/config.ts';
import { isRefusal, type Json } from '../../plugins-sdk/index.ts';
import { parameterSchema } from '../shared/parameter-schema.ts';
import { parametersInPaths } from '../shared/path-parameters.ts';
import { checkBody, withForm } from './body.ts';
import { checkMisleading } from './misleading.ts';
import { compilePlacement, type Declared } from './placement.ts';

const RESERVED = /^_(type|path|times)$/;
const COOKIE_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Checks the parameters and the path of an endpoint. */
export function* checkEndpoint(endpoint: EndpointDraft, context: CheckContext): Iterable<Finding> {
  const declared = withForm(endpoint, declaredParameters(endpoint, context));
  const inPaths = parametersInPaths(endpoint);
  const seen = new Set<string>();
  for (const parameter of declared) {
    const { name, at, in: place } = parameter;
    const key = `${place} ${place === 'header' ? name.toLowerCase() : name}`;
    if (seen.has(key)) yield error(at, `there are two ${place} parameters named "${name}"`);
    seen.add(key);
    yield* checkSchema(parameter);
    yield* checkMap(parameter);
    if (RESERVED.test(name)) yield error(`${at}.name`, `"${name}" is a reserved parameter`);
    if (parameter.required && parameter.default !== undefined)
      yield error(at, 'is both required and has a default: choose one');
    if (place === 'header') yield* checkHeaderName(`${at}.name`, name);
    if (place === 'cookie' && !COOKIE_NAME.test(name)) yield error(`${at}.name`, 'is no valid cookie name');
    if (place === 'path' && /[/?]/.test(name)) yield error(`${at}.name`, 'a path parameter must hold no / or ?');
    if (place === 'path' && !placeholdersOf(endpoint).has(name))
      yield error(`${at}.name`, `the path has no placeholder {${name}}`);
    if (place === 'none' && !inPaths.has(name)) yield warning(at, unused(name));
  }
  yield* checkBody(endpoint, declared);
  yield* checkTaken(endpoint, declared);
  yield* checkMisleading(endpoint, declared);
  yield* checkPath(endpoint, declared);
}

function unused(name: string): string {
  return `is sent nowhere, and no path into the answer holds {${name}}: it changes nothing but the endpoint ID`;
}

type Placed = DeclaredParameter & Declared;

function placeholdersOf(endpoint: EndpointDraft): ReadonlySet<string> {
  return new Set([...(keys.path.of(endpoint) ?? '').matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name ?? ''));
}

function* checkPath(endpoint: EndpointDraft, declared: readonly Placed[]): Iterable<Finding> {
  const at = `${endpoint.path}.path`;
  const path = keys.path.of(endpoint) ?? '';
  const isPlaced = (text: string) => declared.some(({ name, in: place }) => place === 'path' && name === text);
  const orphans = [...placeholdersOf(endpoint)].filter((name) => !isPlaced(name));
  if (orphans.length === 0) yield* checkValues(endpoint, declared);
  if (/^[^/?]/.test(path))
    yield warning(at, `asks the same as /${path}, but makes another endpoint ID: write /${path}`);
  if (/[{}]/.test(path.replace(/\{[^{}]*\}/g, ''))) yield error(at, 'holds a brace without its counterpart');
  for (const name of orphans) yield error(at, `the placeholder {${name}} has no parameter with in: path`);
}

/** Finds parameters that the operator has pinned elsewhere: the pinned value wins, or is sent as well. */
function* checkTaken(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Iterable<Finding> {
  const headers = Object.entries(keys.headers.of(endpoint) ?? {});
  const headerNamed = (text: string) => headers.find(([name]) => name.toLowerCase() === text.toLowerCase());
  const cookies = `;${headerNamed('cookie')?.[1] ?? ''}`.replaceAll(' ', '');
  const pinned = new URLSearchParams((keys.path.of(endpoint) ?? '').split('?')[1]);
  for (const { at, name, in: place } of declared) {
    const beside = (what: string) => warning(at, `is sent beside the ${name} that ${what}: the upstream gets both`);
    if (place === 'query' && pinned.has(name)) yield beside('the path holds');
    if (place === 'cookie' && cookies.includes(`;${name}=`)) yield beside('the headers of the API hold');
    if (place !== 'header') continue;
    if (/^cookie$/i.test(name) && declared.some((each) => each.in === 'cookie'))
      yield error(at, 'a header named Cookie leaves no room for parameters with in: cookie');
    else if (headerNamed(name)) yield warning(at, `is never sent: the headers of the API hold ${name}`);
  }
}

const NESTED_PLACES = 'lists and objects are for in: body, lists also for in: query with a style';

/** Finds fixed and default values that cannot be sent: they would fail every request and blame the client. */
function* checkValues(endpoint: EndpointDraft, declared: readonly Placed[]): Iterable<Finding> {
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
  if (!isPlaceable(-1, null)) return yield error(`${endpoint.path}.path`, 'must hold no . or .. segment');
  for (const [index, { at, in: where, form, map, fixed, default: fallback }] of declared.entries())
    for (const [path, value] of valuesAt(map ? `${at}.map` : at, map ?? { fixed, default: fallback })) {
      const remedy = typeof value === 'object' ? `: ${NESTED_PLACES}` : '';
      if (!isPlaceable(index, value))
        yield error(path, `cannot be sent as ${form ? 'a member of a form' : where}${remedy}`);
    }
}

/** Lists the values that are set, each with its config path. */
function valuesAt(at: string, values: Readonly<Record<string, Json | undefined>>): [string, Json][] {
  return Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[childPath(at, key), value]]));
}

/** Checks that fixed and default values are in the map. */
function* checkMap({ at, map, fixed, default: fallback }: DeclaredParameter): Iterable<Finding> {
  if (map === undefined) return;
  for (const [path, value] of valuesAt(at, { fixed, default: fallback }))
    if (typeof value !== 'string' || !Object.hasOwn(map, value)) yield error(path, 'is not in the map');
}

/** Checks the schema, and that a text of the map fits it, and fixed and default values. */
function* checkSchema({ at, schema, secret, map, fixed, default: fallback }: DeclaredParameter): Iterable<Finding> {
  if (schema === undefined) return;
  const { findings, misfit } = parameterSchema({ schema, secret }, `${at}.schema`);
  if (findings.length > 0) return yield* findings;
  if (map !== undefined && fixed === undefined && Object.keys(map).every((text) => misfit(text) !== undefined))
    return yield error(`${at}.map`, 'holds no text that fits the schema: no request could give a value');
  for (const [path, value] of valuesAt(at, { fixed, default: fallback })) {
    const why = misfit(value);
    if (why !== undefined) yield error(path, `does not fit the schema: ${why}`);
  }
}
