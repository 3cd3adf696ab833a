import { type Static, Type } from 'typebox';
import { millisecondsSchema } from '../../plugins-sdk/keys.ts';
import { closedObject } from '../../plugins-sdk/schema/close.ts';

/** One entry of `settings.plugins`. */
export const PluginEntrySchema = closedObject({
  source: Type.String({
    minLength: 1,
    description: 'Path of a .ts, .mts, .js or .mjs module relative to this file, a package name, or builtin:<name>',
  }),
  timeout: Type.Optional(
    // A hook may need only a few milliseconds, so there is no warning that a small number looks like seconds.
    millisecondsSchema('Budget per request, for all its hooks; default 1s', { duration: 0 }),
  ),
  config: Type.Optional(Type.Unknown({ description: 'Options of the plugin, checked by its own schema' })),
  isolate: Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        closedObject({
          memory: Type.Integer({
            minimum: 96,
            maximum: 65_536,
            description: 'MiB that the process may take; default 128',
          }),
        }),
      ],
      { description: 'Runs it in its own process; default false' },
    ),
  ),
  enabled: Type.Optional(Type.Boolean({ description: 'false leaves a built-in plugin out; default true' })),
});

export type PluginEntry = Static<typeof PluginEntrySchema>;

export const PluginsSchema = Type.Array(PluginEntrySchema, {
  description: 'In the order in which their hooks run; default none',
});
