import { closedObject, optionalKey } from '../../plugins-sdk/config.ts';
import { definePlugin, isRefusal, type Services, Type } from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import type { Limits } from './ledger.ts';
import { failures } from './openapi.ts';
import { Quota } from './quota.ts';

function callsPer(window: string) {
  const description = `Calls in a calendar ${window} of UTC; default unlimited`;
  return Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
}

const quotaKey = optionalKey(
  'api',
  'quota',
  closedObject(
    {
      perSecond: callsPer('second'),
      perMinute: callsPer('minute'),
      perHour: callsPer('hour'),
      perDay: callsPer('day'),
    },
    'Limits upstream calls, and heeds Retry-After; default none',
  ),
);

const kept = new StateKey<Map<string, Quota>>('quotas of upstreams');

/** Divides limits among the workers, if they share no engine. */
function partOf(limits: Limits, workers: number): Limits {
  const parts = Object.entries(limits).map(([name, limit]) => [name, Math.max(1, Math.floor(limit / workers))]);
  return Object.fromEntries(parts);
}

function quotasOf({ endpoints, states, stateEngine, workers, now }: Services): ReadonlyMap<string, Quota> {
  const before = states.keep(kept, '', () => new Map<string, Quota>());
  const area = stateEngine?.area('upstream-quota');
  for (const [api, endpoint] of new Map(endpoints.map((each) => [each.api, each]))) {
    const limits = quotaKey.of(endpoint);
    if (limits === undefined) before.delete(api);
    else {
      const own = area === undefined ? partOf(limits, workers?.count ?? 1) : limits;
      before.set(api, new Quota({ api, limits: own, area, now }, before.get(api)));
    }
  }
  return new Map(before);
}

/** Keeps an API's calls within its quota, and pauses them when the upstream sends `Retry-After`. */
export const upstreamQuota = definePlugin({
  name: 'upstream-quota',
  budget: 'none',
  keys: [quotaKey],
  openapi: () => ({ operation: (endpoint) => (quotaKey.of(endpoint) === undefined ? {} : { failures }) }),
  setup(services) {
    const { endpoints, meters, status } = services;
    if (endpoints.every((endpoint) => quotaKey.of(endpoint) === undefined)) return {};
    const quotas = quotasOf(services);
    const uses = () =>
      [...quotas].flatMap(([api, quota]) =>
        quota.uses().map(({ name, calls, limit }) => ({ api, name, calls, limit })),
      );
    const help = 'Part of a quota of upstream calls that is used, of the API and the window that have least left';
    meters.gauge({ name: 'upstream_quota_used_ratio', help, across: 'max' }, () =>
      Math.max(0, ...uses().map(({ calls, limit }) => calls / limit)),
    );
    status.show('quotas', uses);
    return {
      hooks: {
        callApi: async (_, { endpoint }, { next }) => {
          const quota = quotas.get(endpoint.api);
          if (quota === undefined) return undefined;
          const refusal = await quota.take();
          if (refusal !== undefined) throw refusal;
          try {
            return await next();
          } catch (error) {
            const { upstreamStatus, retryAfter } = isRefusal(error) ? error : {};
            if (retryAfter !== undefined && (upstreamStatus === 429 || upstreamStatus === 503)) quota.pause(retryAfter);
            throw error;
          }
        },
      },
    };
  },
});
