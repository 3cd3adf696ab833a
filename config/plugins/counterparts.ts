import type { PluginSet } from '../../kernel/registry.ts';
import type { Endpoint } from '../../kernel/values.ts';
import { nearest } from '../../lib/suggest.ts';
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
 * Finds auth types and modes without a function, which no request could pass, and functions for undeclared ones, which no request
 * could reach. Either stops the start of the service.
 * @param endpoints if given, only the auth types and modes that they use need a function.
 */
export function missingCounterparts(
  definitions: readonly Definition[],
  taps: PluginSet['taps'],
  endpoints?: readonly Endpoint[],
) {
  return SIDES.flatMap(({ member, stage, verb, of, usedBy }) => {
    const declared = definitions.flatMap((definition) => of(definition).map((variant) => [definition.name, variant]));
    const names = declared.map(([, variant = '']) => variant);
    const used = new Set(endpoints?.flatMap(usedBy) ?? names);
    const provided = new Set(taps[stage].map(({ variant }) => variant));
    // The auth type and the mode of endpoints that set none need no declaration.
    const known = new Set([...used, ...names]);
    const idle = declared.filter(([, variant = '']) => used.has(variant) && !provided.has(variant));
    const stray = taps[stage].filter(({ variant = '' }) => !known.has(variant));
    return [
      ...idle.map(([plugin = '', variant]) => ({
        plugin,
        why: `"${member}" has "${variant}", which no plugin ${verb} in "hooks.${stage}"`,
      })),
      ...stray.map(({ plugin, variant = '' }) => {
        const meant = nearest(variant, names);
        const suggestion = meant === undefined ? '' : `, did you mean "${meant}"?`;
        return { plugin, why: `"hooks.${stage}" has "${variant}", which no plugin has in "${member}"${suggestion}` };
      }),
    ];
  });
}
