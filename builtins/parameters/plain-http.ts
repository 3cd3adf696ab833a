import { isReadableOnTheWay } from '../../lib/http/target.ts';
import {
  apiPath,
  type CheckContext,
  checkPlainHttp,
  declaredParameters,
  type EndpointDraft,
  type Finding,
  keys,
  warning,
} from '../../plugins-sdk/config.ts';

/** Headers whose very purpose is to carry a credential, or that are named for one. */
const CREDENTIAL = /^(?:proxy-)?authorization$|^cookie$|api-?key|token|secret|password|session/i;

/** How many places a text names. */
const NAMED = 3;

/** Finds APIs that are called over plain HTTP, beyond this machine, and names the credentials that they are sent. */
export function plainHttp(context: CheckContext): Finding[] {
  const byApi = new Map<string, EndpointDraft[]>();
  for (const endpoint of context.endpoints) {
    const api = apiPath(endpoint);
    const known = byApi.get(api);
    if (known === undefined) byApi.set(api, [endpoint]);
    else known.push(endpoint);
  }
  return [...byApi].flatMap(([api, endpoints]) => {
    const [first] = endpoints;
    if (first === undefined || !isReadableOnTheWay(keys.url.of(first))) return [];
    const places = [
      ...secretHeaders(api, first, context),
      ...endpoints.flatMap((endpoint) => secretParameters(endpoint, context)),
    ];
    if (places.length === 0) return checkPlainHttp(`${api}.url`, keys.url.of(first), 'change what gets signed');
    const more = places.length > NAMED ? ` and ${places.length - NAMED} more` : '';
    const message = `sends credentials that anyone on the way can read (${places.slice(0, NAMED).join(', ')}${more}): use https`;
    return [warning(`${api}.url`, message)];
  });
}

function secretHeaders(api: string, endpoint: EndpointDraft, { interpolated }: CheckContext): string[] {
  return Object.keys(keys.headers.of(endpoint) ?? {})
    .map((name) => ({ name, place: /^[\w-]+$/.test(name) ? `headers.${name}` : `headers[${JSON.stringify(name)}]` }))
    .filter(({ name, place }) => CREDENTIAL.test(name) || interpolated(`${api}.${place}`))
    .map(({ place }) => place);
}

function secretParameters(endpoint: EndpointDraft, context: CheckContext): string[] {
  return declaredParameters(endpoint, context)
    .filter(({ secret }) => secret)
    .map(({ at }) => at.replace(/^apis\[\d+\]\./, ''));
}
