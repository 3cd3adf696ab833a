import type { PluginSet } from '../../kernel/registry.ts';
import type { Endpoint } from '../../kernel/values.ts';
import type { Definition } from '../../plugins-sdk/define.ts';

const SIDES = [
  {
    member: 'auth',
    stage: 'authenticate',
    verb: 'checks',
    of: ({ auth = {} }: Definition) => Object.keys(auth),
    usedBy: ({ auth }: Endpoint) => auth.map(({ type }) => type),
  },
  {
    member: 'modes',
    stage: 'present',
    verb: 'delivers',
    of: ({ modes = [] }: Definition) => modes,
    usedBy: ({ mode }: Endpoint) => [mode],
  },
] as const;

/**
 * Finds auth types and modes without a function, which no request could pass. One stops the start of the service.
 * @param endpoints if given, only the auth types and modes that they use need a function.
 */
export function missingCounterparts(
  definitions: readonly Definition[],
  taps: PluginSet['taps'],
  endpoints?: readonly Endpoint[],
) {
  return SIDES.flatMap(({ member, stage, verb, of, usedBy }) => {
    const provided = new Set(taps[stage].map(({ variant }) => variant));
    const used = new Set(endpoints?.flatMap(usedBy));
    const isMissing = (variant: string) => !provided.has(variant) && (endpoints === undefined || used.has(variant));
    return definitions.flatMap((definition) =>
      of(definition)
        .filter(isMissing)
        .map((variant) => ({
          plugin: definition.name,
          why: `"${member}" has "${variant}", which no plugin ${verb} in "hooks.${stage}"`,
        })),
    );
  });
}
