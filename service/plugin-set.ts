import type { GuardOptions } from '../kernel/guard.ts';
import type { Observer } from '../kernel/hooks.ts';
import { errorForLog } from '../kernel/refusal.ts';
import { type PluginSet, type Registration, RegistrationError, register } from '../kernel/registry.ts';
import { LATE, withTimeout } from '../lib/time.ts';
import { contractsFor, type ServiceFacts } from '../plugins-sdk/results/contracts.ts';

/** Milliseconds that a plugin has to start. */
const START_TIMEOUT_MS = 30_000;

/**
 * Registers plugins, whose behaviour was checked, in their order.
 * @param complain called for every failure after which a request goes on.
 * @throws RegistrationError
 */
export function createPluginSet(
  registrations: readonly Registration[],
  complain: GuardOptions['complain'],
  facts: ServiceFacts,
): PluginSet {
  const observer = observeAll(registrations, complain);
  return register(registrations, { contracts: contractsFor(facts), complain, observer });
}

/** Starts one plugin. @throws RegistrationError when it cannot start, or not within 30 seconds. */
export async function startPlugin({ name, plugin }: Registration, hide: (text: string) => string): Promise<void> {
  try {
    const started = await withTimeout(START_TIMEOUT_MS, plugin.start?.());
    if (started === LATE) throw new Error(`is not ready after ${START_TIMEOUT_MS} ms`);
  } catch (error) {
    throw new RegistrationError(`plugin "${name}" cannot start: ${hide(errorForLog(error, 'message'))}`);
  }
}

/** Joins the observers of many plugins into one. A member that no plugin has is absent. Their errors go to `complain`. */
function observeAll(plugins: readonly Registration[], complain: GuardOptions['complain']): Observer {
  const failed = (plugin: string, error: unknown) => complain({ plugin, stage: 'observe', requestId: '', error });
  const tell = <A extends unknown[]>(pick: (observe: Observer) => ((...args: A) => unknown) | undefined) => {
    const listeners = plugins.flatMap(({ name, plugin: { observe = {} } }) => {
      const listen = pick(observe)?.bind(observe);
      return listen === undefined ? [] : [{ name, listen }];
    });
    if (listeners.length === 0) return undefined;
    return (...args: A): void => {
      for (const { name, listen } of listeners) {
        try {
          const result = listen(...args);
          if (result instanceof Promise) result.catch((error) => failed(name, error));
        } catch (error) {
          failed(name, error);
        }
      }
    };
  };
  const stage = tell((observe) => observe.stage);
  const call = tell((observe) => observe.call);
  const response = tell((observe) => observe.response);
  return { ...(stage && { stage }), ...(call && { call }), ...(response && { response }) };
}
