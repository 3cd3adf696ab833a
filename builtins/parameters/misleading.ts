import {
  apiPath,
  type DeclaredParameter,
  type EndpointDraft,
  type Finding,
  keys,
  warning,
} from '../../plugins-sdk/config.ts';
import { apiHeaders } from '../shared/api-headers.ts';
import { bodyType } from './body.ts';

const NO_BASE64 =
  'Basic takes base64, which holds no colon: write the base64 of user:password, or in headers basic: {user, password}';
const NO_FORM = 'announces a form, but body parameters are sent as JSON: set bodyType: form, or leave it out';
const NO_JSON = 'announces something else than the form that bodyType: form sends: leave it out';
const NO_BODY = 'sends body parameters with GET, which upstreams ignore or refuse: set method: POST, or in: query';

/** Returns the headers that the operator sends, with names in lower case, each with its config path. */
function sentHeaders(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]) {
  const ofApi = Object.entries(apiHeaders(endpoint)).map(([name, value]) => {
    return { name: name.toLowerCase(), value, at: `${apiPath(endpoint)}.headers.${name}` };
  });
  const own = declared
    .filter((parameter) => parameter.in === 'header')
    .flatMap(({ name, at, fixed, default: fallback }) =>
      Object.entries({ fixed, default: fallback }).map(([key, value]) => {
        return { name: name.toLowerCase(), value: String(value ?? ''), at: `${at}.${key}` };
      }),
    );
  return [...ofApi, ...own];
}

/** Warns of a `Content-Type` that does not match the body. */
function* checkType(endpoint: EndpointDraft, type: string, at: string): Iterable<Finding> {
  const isForm = bodyType.of(endpoint) === 'form';
  if (isForm && !/^\s*application\/x-www-form-urlencoded\b/i.test(type)) yield warning(at, NO_JSON);
  if (!isForm && /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(type))
    yield warning(at, NO_FORM);
}

/** Warns of config that upstreams will read otherwise than the operator means. */
export function* checkMisleading(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Iterable<Finding> {
  const hasBody = declared.some((parameter) => parameter.in === 'body');
  if (hasBody && (keys.method.of(endpoint) ?? 'GET') === 'GET') yield warning(endpoint.path, NO_BODY);
  for (const { name, value, at } of sentHeaders(endpoint, declared)) {
    if (/^(?:proxy-)?authorization$/.test(name) && /^basic\s.*:/i.test(value)) yield warning(at, NO_BASE64);
    if (name === 'content-type' && hasBody) yield* checkType(endpoint, value, at);
  }
}
