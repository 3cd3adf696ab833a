import type { PluginSet } from '../../kernel/registry.ts';
import type { Endpoint } from '../../kernel/values.ts';
import type { Definition } from '../../plugins-sdk/define.ts';

/**
 * Finds auth types and modes without a function, which no request could pass. One stops the start of the service.
 * @param endpoints if given, only the auth types and modes that they use need a function.
 */
export function missingCounterparts(
  definitions: readonly Definition[],
  taps: PluginSet['taps'],
  endpoints?: readonly Endpoint[],
) {
  const isMissing = (stage: 'authenticate' | 'present', variant: string, uses: (endpoint: Endpoint) => boolean) =>
    !taps[stage].some((tap) => tap.variant === variant) && (endpoints?.some(uses) ?? true);
  return definitions.flatMap(({ name: plugin, auth = {}, modes = [] }) => [
    ...Object.keys(auth)
      .filter((type) => isMissing('authenticate', type, (endpoint) => endpoint.auth.some((one) => one.type === type)))
      .map((type) => ({ plugin, why: `"auth" has "${type}", which no plugin checks in "hooks.authenticate"` })),
    ...modes
      .filter((mode) => isMissing('present', mode, (endpoint) => endpoint.mode === mode))
      .map((mode) => ({ plugin, why: `"modes" has "${mode}", which no plugin delivers in "hooks.present"` })),
  ]);
}
