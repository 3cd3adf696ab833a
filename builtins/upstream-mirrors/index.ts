import { isReadableOnTheWay, missingScheme } from '../../lib/http/target.ts';
import {
  apiPath,
  checkPlainHttp,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  warning,
} from '../../plugins-sdk/config.ts';
import { definePlugin, perEndpoint, type Services, type Taps } from '../../plugins-sdk/index.ts';
import {
  basesOf,
  callTimeoutOf,
  firstOfApis,
  isBelow,
  isOutage,
  isUnsent,
  mirrorsKey,
  worse,
} from '../shared/upstream.ts';
import { mirrored } from './openapi.ts';

/** Milliseconds for which a host that has failed is asked last. */
const REST_MS = 30_000;

const NO_BASE = 'must be an http or https URL without user name, query and fragment';
const OPEN = 'must be an https URL: what nobody can read on the way to the API, all could read there';

function checkMirrors(endpoint: EndpointDraft): Finding[] {
  const at = `${apiPath(endpoint)}.mirrors`;
  const found = mirrorsKey.of(endpoint);
  if (found === undefined) return [];
  const bases = basesOf(endpoint);
  const isSecret = !isReadableOnTheWay(keys.url.of(endpoint));
  const errors = found.flatMap((text, i) => {
    const isUrl = /^https?:\/\/[^\s\\?#@]+$/i.test(text) && URL.canParse(text);
    const isTwice = bases.indexOf(bases[i + 1] ?? '') <= i;
    return [
      ...(isUrl ? [] : [missingScheme(text) ?? NO_BASE]),
      ...(isSecret && isReadableOnTheWay(text) ? [OPEN] : []),
      ...(isTwice ? ['is there twice, or the URL of the API itself'] : []),
    ].map((fault) => error(`${at}[${i}]`, fault));
  });
  if (errors.length > 0) return errors;
  const message =
    'are not in the endpoint ID: clients cannot tell which host an answer is of, so name hosts that mean the same';
  const plain = found.flatMap((text, i) => checkPlainHttp(`${at}[${i}]`, text, 'change what gets signed'));
  return [warning(at, message), ...plain];
}

/** When each base URL of an API failed last, as `performance.now()` counts. */
type Failures = Map<string, number>;

/** Returns the base URLs in the order in which they are asked: recently failed ones come last. */
function inOrder(bases: readonly string[], failedAt: Failures): readonly string[] {
  const rests = (base: string) => performance.now() - (failedAt.get(base) ?? Number.NEGATIVE_INFINITY) < REST_MS;
  return bases.toSorted((a, b) => Number(rests(a)) - Number(rests(b)));
}

function failingOver({ endpoints, meters }: Services): NonNullable<Taps['callApi']> {
  const withMirrors = endpoints.filter((endpoint) => mirrorsKey.of(endpoint) !== undefined);
  const apis = new Map(withMirrors.map(({ api }): [string, Failures] => [api, new Map()]));
  const failovers = meters.counter({
    name: 'upstream_failovers_total',
    help: 'Upstream calls that were made at another host after a failure',
    labels: ['api'],
    initial: [...apis.keys()].map((api) => ({ api })),
  });
  const known = perEndpoint(endpoints, (endpoint) => ({ all: basesOf(endpoint), timeout: callTimeoutOf(endpoint) }));
  return async (request, { endpoint }, { next, signal }) => {
    const failedAt = apis.get(endpoint.api);
    const { all, timeout } = known(endpoint);
    const [own = ''] = all;
    // A plugin may have chosen another host.
    if (failedAt === undefined || !isBelow(own, request.url)) return undefined;
    const deadline = performance.now() + (request.timeout ?? timeout);
    const bases = inOrder(all, failedAt);
    let failure: unknown;
    for (let i = 0; ; i += 1) {
      const [base = own, left] = [bases[i], bases.length - i];
      const timeout = Math.max(1, Math.floor((deadline - performance.now()) / left));
      try {
        return await next({ ...request, url: base + request.url.slice(own.length), timeout });
      } catch (error) {
        failure = worse(failure, error);
        // A request that may have been carried out is not repeated. After a 503 no host helps: all share the slots of the API.
        const isElsewhereBetter =
          isOutage(error) && (isUnsent(error) || (request.method === 'GET' && error.status !== 503));
        if (!isElsewhereBetter || signal.aborted) throw failure;
        failedAt.set(base, performance.now());
        if (left === 1) throw failure;
        failovers({ api: endpoint.api }, 1);
      }
    }
  };
}

/** Asks another host when one fails. The remaining hosts divide what is left of the API's `timeout`. */
export const upstreamMirrors = definePlugin({
  name: 'upstream-mirrors',
  budget: 'none',
  keys: [mirrorsKey],
  check: ({ endpoints }) => firstOfApis(endpoints).flatMap(checkMirrors),
  openapi: () => ({ operation: (endpoint) => (mirrorsKey.of(endpoint) === undefined ? {} : mirrored) }),
  setup: (services) =>
    services.endpoints.some((endpoint) => mirrorsKey.of(endpoint) !== undefined)
      ? { hooks: { callApi: failingOver(services) } }
      : {},
});
