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

/** Checks the parameters and the path of an endpoint. */
export function checkEndpoint(endpoint: EndpointDraft, context: CheckContext): Finding[] {
  const declared = withForm(endpoint, declaredParameters(endpoint, context));
  const placeholders = placeholdersOf(endpoint);
  const inPaths = parametersInPaths(endpoint);
  const seen = new Set<string>();
  const findings = declared.flatMap((parameter) => {
    const { name, at, in: place } = parameter;
    const key = `${place} ${place === 'header' ? name.toLowerCase() : name}`;
    const double = seen.has(key);
    seen.add(key);
    return [
      ...(double ? [error(at, `there are two ${place} parameters named "${name}"`)] : []),
      ...checkSchema(parameter),
      ...checkMap(parameter),
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
      ...(place === 'none' && !inPaths.has(name) ? [warning(at, unused(name))] : []),
    ];
  });
  return [
    ...findings,
    ...checkBody(endpoint, declared),
    ...checkTaken(endpoint, declared),
    ...checkMisleading(endpoint, declared),
    ...checkPath(endpoint, declared),
  ];
}

function unused(name: string): string {
  return `is sent nowhere, and no path into the answer holds {${name}}: it changes nothing but the endpoint ID`;
}

type Placed = DeclaredParameter & Declared;

function placeholdersOf(endpoint: EndpointDraft): ReadonlySet<string> {
  return new Set([...(keys.path.of(endpoint) ?? '').matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name ?? ''));
}

function checkPath(endpoint: EndpointDraft, declared: readonly Placed[]): Finding[] {
  const at = `${endpoint.path}.path`;
  const path = keys.path.of(endpoint) ?? '';
  const isPlaced = (text: string) => declared.some(({ name, in: place }) => place === 'path' && name === text);
  const orphans = [...placeholdersOf(endpoint)].filter((name) => !isPlaced(name));
  return [
    ...(orphans.length === 0 ? checkValues(endpoint, declared) : []),
    ...(/^[^/?]/.test(path)
      ? [warning(at, `asks the same as /${path}, but makes another endpoint ID: write /${path}`)]
      : []),
    ...(/[{}]/.test(path.replace(/\{[^{}]*\}/g, '')) ? [error(at, 'holds a brace without its counterpart')] : []),
    ...orphans.map((name) => error(at, `the placeholder {${name}} has no parameter with in: path`)),
  ];
}

/** Finds parameters that the operator has pinned elsewhere: the pinned value wins, or is sent as well. */
function checkTaken(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Finding[] {
  const headers = Object.entries(keys.headers.of(endpoint) ?? {});
  const headerNamed = (text: string) => headers.find(([name]) => name.toLowerCase() === text.toLowerCase());
  const cookies = `;${headerNamed('cookie')?.[1] ?? ''}`.replaceAll(' ', '');
  const pinned = new URLSearchParams((keys.path.of(endpoint) ?? '').split('?')[1]);
  return declared.flatMap(({ at, name, in: place }) => {
    const beside = (what: string) => [warning(at, `is sent beside the ${name} that ${what}: the upstream gets both`)];
    if (place === 'query' && pinned.has(name)) return beside('the path holds');
    if (place === 'cookie' && cookies.includes(`;${name}=`)) return beside('the headers of the API hold');
    if (place !== 'header') return [];
    if (/^cookie$/i.test(name) && declared.some((each) => each.in === 'cookie'))
      return [error(at, 'a header named Cookie leaves no room for parameters with in: cookie')];
    return headerNamed(name) ? [warning(at, `is never sent: the headers of the API hold ${name}`)] : [];
  });
}

const NESTED_PLACES = 'lists and objects are for in: body, lists also for in: query with a style';

/** Finds fixed and default values that cannot be sent: they would fail every request and blame the client. */
function checkValues(endpoint: EndpointDraft, declared: readonly Placed[]): Finding[] {
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
  return declared.flatMap(({ at, in: where, form, map, fixed, default: fallback }, index) =>
    valuesAt(map === undefined ? at : `${at}.map`, map ?? { fixed, default: fallback })
      .filter(([, value]) => !isPlaceable(index, value))
      .map(([path, value]) => {
        const remedy = typeof value === 'object' ? `: ${NESTED_PLACES}` : '';
        return error(path, `cannot be sent as ${form ? 'a member of a form' : where}${remedy}`);
      }),
  );
}

/** Lists the values that are set, each with its config path. */
function valuesAt(at: string, values: Readonly<Record<string, Json | undefined>>): [string, Json][] {
  return Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[childPath(at, key), value]]));
}

/** Checks that fixed and default values are in the map. */
function checkMap({ at, map, fixed, default: fallback }: DeclaredParameter): Finding[] {
  if (map === undefined) return [];
  return valuesAt(at, { fixed, default: fallback })
    .filter(([, value]) => typeof value !== 'string' || !Object.hasOwn(map, value))
    .map(([path]) => error(path, 'is not in the map'));
}

/** Checks the schema, and that a text of the map fits it, and fixed and default values. */
function checkSchema({ at, schema, secret, map, fixed, default: fallback }: DeclaredParameter): Finding[] {
  if (schema === undefined) return [];
  const { findings, misfit } = parameterSchema({ schema, secret }, `${at}.schema`);
  if (findings.length > 0) return [...findings];
  if (map !== undefined && fixed === undefined && Object.keys(map).every((text) => misfit(text) !== undefined))
    return [error(`${at}.map`, 'holds no text that fits the schema: no request could give a value')];
  return valuesAt(at, { fixed, default: fallback }).flatMap(([path, value]) => {
    const why = misfit(value);
    return why === undefined ? [] : [error(path, `does not fit the schema: ${why}`)];
  });
}
