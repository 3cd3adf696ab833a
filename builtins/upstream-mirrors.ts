import { apiPath, error, warning } from '../plugins-sdk/checks.ts';
import {
  configKey,
  definePlugin,
  type EndpointDraft,
  type Finding,
  perEndpoint,
  type Services,
  type Taps,
  Type,
} from '../plugins-sdk/index.ts';
import { baseUrl, DEFAULT_TIMEOUT_MS, keys } from '../plugins-sdk/keys.ts';
import { isReadableOnTheWay } from '../plugins-sdk/lib/http/plain-http.ts';
import { isOutage, isUnsent, worse } from './shared/upstream-failure.ts';

/** Milliseconds for which a host that has failed is asked after the others. */
const REST_MS = 30_000;

const mirrors = configKey(
  'api',
  'mirrors',
  Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 10,
      uniqueItems: true,
      description: 'Base URLs that are asked where the one before fails; they get the same headers. Default none',
    }),
  ),
);

const withoutSlash = (url: string) => url.replace(/\/$/, '');

function checkMirrors(endpoint: EndpointDraft): Finding[] {
  const at = `${apiPath(endpoint)}.mirrors`;
  const found = mirrors.of(endpoint);
  if (found === undefined) return [];
  const wrong = found.flatMap((text, i) =>
    /^https?:\/\/[^\s\\?#@]+$/i.test(text) && URL.canParse(text)
      ? []
      : [error(`${at}[${i}]`, 'must be an http or https URL without user name, query and fragment')],
  );
  const bases = [baseUrl(endpoint), ...found.map(withoutSlash)];
  const twice = found.flatMap((_, i) =>
    bases.indexOf(bases[i + 1] ?? '') <= i
      ? [error(`${at}[${i}]`, 'is there twice, or the URL of the API itself')]
      : [],
  );
  const isSecret = /^https:/i.test(keys.url.of(endpoint) ?? '');
  const open = found.flatMap((text, i) =>
    isSecret && isReadableOnTheWay(text) ? [error(`${at}[${i}]`, 'must be an https URL, as that of the API is')] : [],
  );
  const message =
    'are not in the endpoint ID: clients cannot tell which host an answer is of, so name hosts that mean the same';
  const errors = [...wrong, ...open, ...twice];
  return errors.length > 0 ? errors : [warning(at, message)];
}

/** The base URLs of an API, in the order in which they are asked: those that failed a moment ago come last. */
class Hosts {
  readonly #bases: readonly string[];
  readonly #failedAt = new Map<string, number>();

  constructor(bases: readonly string[]) {
    this.#bases = bases;
  }

  get own(): string {
    return this.#bases[0] ?? '';
  }

  inOrder(): readonly string[] {
    const rests = (base: string) =>
      Number(performance.now() - (this.#failedAt.get(base) ?? Number.NEGATIVE_INFINITY) < REST_MS);
    return this.#bases.toSorted((a, b) => rests(a) - rests(b));
  }

  failed(base: string): void {
    this.#failedAt.set(base, performance.now());
  }
}

function failingOver({ endpoints, meters }: Services): NonNullable<Taps['callApi']> {
  const apis = new Map(
    endpoints.map((endpoint) => {
      const others = (mirrors.of(endpoint) ?? []).map(withoutSlash);
      return [endpoint.api, others.length > 0 ? new Hosts([baseUrl(endpoint), ...others]) : undefined];
    }),
  );
  const failovers = meters.counter({
    name: 'upstream_failovers_total',
    help: 'Upstream calls that were made at another host after a failure',
    labels: ['api'],
    initial: [...apis].flatMap(([api, hosts]) => (hosts === undefined ? [] : { api })),
  });
  const timeoutOf = perEndpoint(endpoints, (endpoint) => keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT_MS);
  return async (request, { endpoint }, { next, signal }) => {
    const hosts = apis.get(endpoint.api);
    // A plugin may have turned to a host of its own.
    if (!hosts || !request.url.startsWith(hosts.own)) return undefined;
    const deadline = performance.now() + (request.timeout ?? timeoutOf(endpoint));
    const bases = hosts.inOrder();
    let failure: unknown;
    for (let i = 0; ; i += 1) {
      const [base = hosts.own, left] = [bases[i], bases.length - i];
      const timeout = Math.max(1, Math.floor((deadline - performance.now()) / left));
      try {
        return await next({ ...request, url: base + request.url.slice(hosts.own.length), timeout });
      } catch (error) {
        failure = worse(failure, error);
        // What may have been carried out is not asked for a second time; all hosts share the slots of the API.
        const isElsewhereBetter =
          isOutage(error) && (isUnsent(error) || (request.method === 'GET' && error.status !== 503));
        if (!isElsewhereBetter || signal.aborted) throw failure;
        hosts.failed(base);
        if (left === 1) throw failure;
        failovers({ api: endpoint.api }, 1);
      }
    }
  };
}

/** Asks another host where one fails. Each has its part of what is left of the API's `timeout`. */
export const upstreamMirrors = definePlugin({
  name: 'upstream-mirrors',
  budget: 'none',
  keys: [mirrors],
  check: ({ endpoints }) => endpoints.filter(({ path }) => path.endsWith('.endpoints[0]')).flatMap(checkMirrors),
  setup: (services) =>
    services.endpoints.some((endpoint) => mirrors.of(endpoint) !== undefined)
      ? { hooks: { callApi: failingOver(services) } }
      : {},
});
