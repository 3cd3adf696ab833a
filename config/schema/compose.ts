import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import type { Definition } from '../../plugins-sdk/define.ts';
import { millisecondsSchema } from '../../plugins-sdk/keys.ts';
import { close, closedObject, copyWith } from '../../plugins-sdk/schema/close.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { Claims, ownedKeys } from './key-tree.ts';

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

const PluginsSchema = Type.Array(PluginEntrySchema, {
  description: 'In the order in which their hooks run; default none',
});

/** The value of `settings.state` without an engine. */
const IN_PROCESS = 'memory';

/**
 * Composes the schema of a whole config file from the frame and the parts that plugins contribute.
 * @returns also a finding for each plugin that claims something that another one owns.
 */
export function compose(definitions: readonly Definition[]) {
  const claims = new Claims();
  const ownedBy: OwnedBy = (kind, of) =>
    definitions.flatMap((definition) =>
      of(definition).filter(([type]) => claims.claim(`${kind} "${type}"`, `plugin "${definition.name}"`)),
    );
  const auth = authSchema(ownedBy('auth type', (each) => Object.entries(each.auth ?? {})));
  const modes = ownedBy('mode', (each) => (each.modes ?? []).map((mode) => [mode, mode]));
  const keysAt = ownedKeys(definitions, claims);
  const state = stateSchema(ownedBy('state engine', (each) => Object.entries(each.engines ?? {})));
  ownedBy('part of the endpoint ID', (each) => Object.entries(each.identity ?? {}));
  const ofSettings = keysAt('settings');
  const signers = ownedBy('signer', (each) => Object.entries(each.signers ?? {}));
  const endpoint = closedObject({
    name: Type.String({ minLength: 1, description: 'Human-readable, unique within the API' }),
    description: Type.Optional(Type.String({ description: 'Shown to clients; no effect on requests' })),
    ...modeSchema(modes.map(([mode]) => mode)),
    ...auth,
    ...keysAt('endpoint'),
  });
  const api = closedObject({
    name: Type.String({ minLength: 1, description: 'Human-readable, unique' }),
    ...auth,
    ...keysAt('api'),
    endpoints: Type.Array(endpoint, { minItems: 1, description: 'What clients may call' }),
  });
  const plugins = Type.Optional(PluginsSchema);
  // The plugin that signs declares the key, and the plugins with signers the kinds of its value.
  const signer = ofSettings.signer === undefined ? {} : signerSchema(signers);
  const settings = { ...ofSettings, ...state, ...signer, plugins };
  const schema: TSchema = closedObject({
    version: Type.String({
      pattern: '^1\\.\\d+$',
      description: '1.<number>, such as 1.0: the version of the format that this release reads',
    }),
    ...keysAt('root'),
    server: Type.Optional(closedObject(keysAt('server'), 'Where and how the service listens')),
    settings: Type.Optional(closedObject(settings, 'What applies to all APIs')),
    apis: Type.Array(api, { minItems: 1, description: 'Upstream APIs' }),
  });
  return { schema, findings: claims.findings };
}

/** Collects the contributions of definitions by type. Of two plugins with the same type, the first owns it. */
type OwnedBy = <T>(kind: string, of: (definition: Definition) => readonly (readonly [string, T])[]) => Types<T>;
type Types<T> = readonly (readonly [type: string, T])[];

function modeSchema(modes: string[]): TProperties {
  if (modes.length === 0) return {};
  return { mode: Type.Optional(Type.Enum(modes, { description: 'How the answer is returned; default sync' })) };
}

/** The schema of `auth`: one object or a list of them, distinguished by `type`. */
function authSchema(types: Types<TSchema>): TProperties {
  if (types.length === 0) return {};
  const one = Type.Union(types.map(([type, schema]) => variant(type, schema)));
  const description = 'Who may call; any one method is enough; default free';
  return { auth: Type.Optional(Type.Union([one, Type.Array(one, { minItems: 1 })], { description })) };
}

/** The schema of `settings.state`: `memory`, or an engine distinguished by `type`. */
function stateSchema(types: Types<{ readonly schema: TSchema }>): TProperties {
  if (types.length === 0) return {};
  const engines = types.map(([type, { schema }]) => variant(type, schema));
  const description = 'Where payments, async requests, limits and cached answers are kept; default memory';
  return { state: Type.Optional(Type.Union([Type.Literal(IN_PROCESS), ...engines], { description })) };
}

/** The schema of `settings.signer`, distinguished by `type`; `next` is another signer of the same kinds. */
function signerSchema(types: Types<{ readonly schema: TSchema; readonly local?: boolean }>): TProperties {
  if (types.length === 0) return {};
  const each = (further: TProperties) =>
    Type.Union(
      types.map(([type, { schema, local }]) => variant(type, schema, local ? further : { ...LIMITS, ...further })),
    );
  const description = 'The next signer, during a rotation';
  const next = Type.Optional(copyWith(each({}), { description }));
  const signer = copyWith(each({ next }), {
    description: 'Who signs answers; default the key of the environment',
  });
  return { signer: Type.Optional(signer) };
}

/** The limits of any signer outside the process. */
const LIMITS: TProperties = {
  timeout: Type.Optional(millisecondsSchema('Time limit of a signature, waiting included; default 5s')),
  concurrency: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Simultaneous signatures; default 16' }),
  ),
};

function variant(type: string, schema: TSchema, further: TProperties = {}): TSchema {
  const own = close(schema);
  const { properties, required } = isRecord(own) ? own : {};
  return copyWith(own, {
    type: 'object',
    required: ['type', ...(Array.isArray(required) ? required : [])],
    properties: { ...(isRecord(properties) ? properties : {}), ...further, type: Type.Literal(type) },
    additionalProperties: false,
  });
}
