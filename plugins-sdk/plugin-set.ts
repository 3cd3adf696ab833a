import { METHODS } from 'node:http';
import type { GuardOptions } from '../kernel/guard.ts';
import type { Observer } from '../kernel/observer.ts';
import { describe } from '../kernel/refusal.ts';
import { type PluginSet, type Registration, RegistrationError, Registry, type Route } from '../kernel/registry.ts';
import type { Vouchers } from './answers.ts';
import { contractsFor } from './contracts.ts';
import { observeAll } from './observe-all.ts';

/** Plugins that are ready to serve, and one observer that tells those of all of them. */
export interface ObservedPlugins extends PluginSet {
  readonly observer: Observer;
}

/**
 * Registers plugins, the first first.
 * @param complain told of every failure after which a request goes on.
 * @param vouchers whose answers pass that no request of this process has made; default none.
 * @throws RegistrationError
 */
export function createPluginSet(
  registrations: readonly Registration[],
  complain: GuardOptions['complain'],
  vouchers: Vouchers = { signers: [], now: Date.now },
): ObservedPlugins {
  const observer: Observer = {};
  const registry = new Registry({ contracts: contractsFor(vouchers), complain, observer });
  for (const registration of registrations) {
    register(registry, registration);
    for (const route of registration.plugin.routes ?? []) checkRoute(registration.name, route);
  }
  const plugins = registry.seal();
  const complainOf = (plugin: string, error: unknown) => complain({ plugin, stage: 'observe', requestId: '', error });
  Object.assign(observer, observeAll(registrations, complainOf));
  return { ...plugins, observer };
}

function register(registry: Registry, registration: Registration): void {
  try {
    registry.register(registration);
  } catch (error) {
    // The members of a plugin may be accessors that throw.
    if (error instanceof RegistrationError) throw error;
    const why = error instanceof Error ? error.message : describe(error);
    throw new RegistrationError(`plugin "${registration.name}" cannot be registered: ${why}`);
  }
}

/** @throws RegistrationError for a route that HTTP cannot serve. */
function checkRoute(plugin: string, { method, path, admit, maxBody = 0 }: Route): void {
  const fail = (why: string) => new RegistrationError(`plugin "${plugin}": route ${method} ${path}: ${why}`);
  if (path !== '*' && !path.startsWith('/')) throw fail('the path must start with a slash, or be *');
  if (typeof admit !== 'boolean') throw fail('"admit" must be true or false');
  if (!Number.isInteger(maxBody) || maxBody < 0) throw fail('"maxBody" must be a number of bytes');
  if (!METHODS.includes(method.toUpperCase())) throw fail('there is no such method');
}
