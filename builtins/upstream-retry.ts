import { setTimeout } from 'node:timers/promises';
import { closedObject, type EndpointDraft, type Finding, keys, optionalKey, warning } from '../plugins-sdk/config.ts';
import { definePlugin, type Endpoint, perEndpoint, type Services, type Taps, Type } from '../plugins-sdk/index.ts';
import { callTimeoutOf, type FailureKind, failureKindOf, worse } from './shared/upstream.ts';

/** Milliseconds before the second call; the pause doubles with each further call. */
const FIRST_PAUSE_MS = 100;

const kinds = ['connect', 'timeout', '5xx', '429', 'unexpected'] as const;

const retry = optionalKey(
  'apiOrEndpoint',
  'retry',
  closedObject(
    {
      attempts: Type.Integer({ minimum: 2, maximum: 10, description: 'Upstream calls, the first included' }),
      on: Type.Optional(
        Type.Array(Type.Enum(kinds), { minItems: 1, description: 'Failures that are retried; default all' }),
      ),
      methods: Type.Optional(
        Type.Array(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), {
          minItems: 1,
          description: 'Methods that are retried; default GET',
        }),
      ),
    },
    'Repeats failed upstream calls; default never',
  ),
);

/** Returns the policy of an endpoint. Its timeout is for all attempts and the pauses between them. */
function policyOf(endpoint: Endpoint) {
  const found = retry.of(endpoint);
  if (found === undefined) return undefined;
  const { attempts, on = kinds, methods = ['GET'] } = found;
  return {
    attempts,
    on: new Set<FailureKind>(on),
    methods: new Set<string>(methods),
    timeout: callTimeoutOf(endpoint),
  };
}

/** Returns the pause in milliseconds: random, so that failed requests do not return together, and at least `Retry-After`. */
function pauseAfter(attempt: number, error: unknown): number {
  const jittered = FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
  return Math.max(jittered, Number(Object(error).retryAfter ?? 0));
}

function retrying({ endpoints, meters }: Services): NonNullable<Taps['callApi']> {
  const policyAt = perEndpoint(endpoints, policyOf);
  const apis = new Set(endpoints.flatMap((endpoint) => (policyAt(endpoint) === undefined ? [] : endpoint.api)));
  // Without `unexpected`, which only APIs with `expect` can have.
  const initial = [...apis].flatMap((api) => kinds.slice(0, -1).map((after) => ({ api, after })));
  const retries = meters.counter({
    name: 'upstream_retries_total',
    help: 'Upstream calls that were made again after a failure',
    labels: ['api', 'after'],
    initial,
  });
  return async (request, { endpoint }, { next, signal }) => {
    const policy = policyAt(endpoint);
    if (!policy?.methods.has(request.method)) return undefined;
    const deadline = performance.now() + policy.timeout;
    let failure: unknown;
    for (let attempt = 1; ; attempt += 1) {
      const part = (deadline - performance.now()) / (policy.attempts - attempt + 1);
      try {
        return await next({ ...request, timeout: Math.max(1, Math.floor(part)) });
      } catch (error) {
        const kind = failureKindOf(error);
        const pause = pauseAfter(attempt, error);
        const isLast = attempt === policy.attempts || performance.now() + pause >= deadline;
        failure = worse(failure, error);
        if (isLast || kind === undefined || !policy.on.has(kind) || signal.aborted) throw failure;
        await setTimeout(pause, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) throw failure;
        retries({ api: endpoint.api, after: kind }, 1);
      }
    }
  };
}

function check(endpoint: EndpointDraft): Finding[] {
  const found = retry.of(endpoint);
  const method = keys.method.of(endpoint) ?? 'GET';
  const { methods = ['GET'] } = found ?? {};
  if (found === undefined || methods.includes(method)) return [];
  const message = `has no retries: calls by ${method} are repeated only where retry.methods names it, since it may do harm to ask twice`;
  return [warning(endpoint.path, message)];
}

/** Repeats an upstream call after a failure that may pass. The remaining attempts divide what is left of the API's `timeout`. */
export const upstreamRetry = definePlugin({
  name: 'upstream-retry',
  budget: 'none',
  keys: [retry],
  check: ({ endpoints }) => endpoints.flatMap(check),
  setup: (services) =>
    services.endpoints.some((endpoint) => retry.of(endpoint) !== undefined)
      ? { hooks: { callApi: retrying(services) } }
      : {},
});
