import { noSlotText, type Release, Semaphore, type SlotLimits } from '../../lib/bounded/semaphore.ts';
import type { CheckContext } from '../../plugins-sdk/config.ts';
import { configKey, type Endpoint, type Exchange, Refusal, Type } from '../../plugins-sdk/index.ts';
import { StateKey, type States } from '../../plugins-sdk/state.ts';
import { failed } from '../shared/upstream.ts';

function callsSchema(description: string) {
  return Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description }));
}

export const maxCalls = configKey(
  'settings',
  'maxConcurrentApiCalls',
  callsSchema('Simultaneous upstream calls; default 50'),
);
export const maxCallsOfApi = configKey(
  'api',
  'maxConcurrentCalls',
  callsSchema('Simultaneous upstream calls of this API; default all of them'),
);

type Config = CheckContext['config'];

export function limitOf(config: Config): number {
  return maxCalls.in(config) ?? 50;
}

const kept = new StateKey<Semaphore>('upstream slots');

export function limitsOf(endpoints: readonly Endpoint[], config: Config): SlotLimits {
  const caps = endpoints.flatMap((endpoint): [string, number][] => {
    const cap = maxCallsOfApi.of(endpoint);
    return cap === undefined ? [] : [[endpoint.api, cap]];
  });
  return { limit: limitOf(config), caps: new Map(caps) };
}

/** Returns the slots of all APIs. Calls from before a reload count, so that a reload never doubles an upstream's load. */
export function slotsFor(limits: SlotLimits, states: States): Semaphore {
  return states.keep(kept, '', () => new Semaphore(limits.limit));
}

/** Makes the refusal for a request that got no slot in time. */
export function busy(reason: string): Refusal {
  return new Refusal(503, 'Server busy', { reason, failureClass: 'busy' });
}

/** Waits for a slot. @throws Refusal 503 if none comes free in time, 502 if the client leaves. */
export async function slot(slots: Semaphore, milliseconds: number, exchange: Exchange): Promise<Release> {
  const release = await slots.acquire(milliseconds, exchange.clientSignal, exchange.endpoint.api);
  if (release !== undefined) return release;
  if (exchange.clientSignal.aborted) throw failed('the client left while it waited for a slot', 'busy');
  throw busy(noSlotText(milliseconds));
}
