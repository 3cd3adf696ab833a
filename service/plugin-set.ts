import type { GuardOptions } from '../kernel/guard.ts';
import type { Observer } from '../kernel/hooks.ts';
import { type PluginSet, type Registration, Registry } from '../kernel/registry.ts';
import { contractsFor, type ServiceFacts } from '../plugins-sdk/results/contracts.ts';
import { observeAll } from './observe-all.ts';

/** Plugins that are ready to serve, and one observer that tells those of all of them. */
export interface ObservedPlugins extends PluginSet {
  readonly observer: Observer;
}

/**
 * Registers plugins whose behaviour was checked, the first first.
 * @param complain told of every failure after which a request goes on.
 * @param facts of the service; default one without signers, whose `resolve` may make endpoints.
 * @throws RegistrationError
 */
export function createPluginSet(
  registrations: readonly Registration[],
  complain: GuardOptions['complain'],
  facts: ServiceFacts = { signers: [], now: Date.now },
): ObservedPlugins {
  const observer: Observer = {};
  const registry = new Registry({ contracts: contractsFor(facts), complain, observer });
  for (const registration of registrations) registry.register(registration);
  const plugins = registry.seal();
  const complainOf = (plugin: string, error: unknown) => complain({ plugin, stage: 'observe', requestId: '', error });
  Object.assign(observer, observeAll(registrations, complainOf));
  return { ...plugins, observer };
}
