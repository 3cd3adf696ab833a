import { type TProperties, type TSchema, Type } from 'typebox';
import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import { millisecondsSchema } from '../../plugins-sdk/keys.ts';
import { close, withMembers } from '../../plugins-sdk/schema/close.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { Claims, plugin } from './claims.ts';
import { type KeyTree, keyTrees, type Level } from './key-tree.ts';
import { PluginsSchema } from './plugin-entry.ts';

/** The schema of a whole config file. */
export interface Composed {
  readonly schema: TSchema;
  /** Plugins that claim one thing twice. */
  readonly findings: readonly Finding[];
}

/** `settings.state` without an engine. */
const IN_PROCESS = 'memory';

/** What is owned by the plugin that signs. */
const SIGNER = 'config key settings.signer';

/** Puts the schema of a config file together: the frame, and what every plugin contributes to it. */
export function compose(definitions: readonly Definition[]): Composed {
  const claims = new Claims();
  const auth = authSchema(definitions, claims);
  const modes = modeNames(definitions, claims);
  const trees = keyTrees(definitions, claims);
  const state = stateSchema(definitions, claims);
  const signer = claims.isFree(SIGNER) ? undefined : signerSchema(definitions, claims);
  const api = apiSchema(trees, modes, auth === undefined ? {} : { auth: Type.Optional(auth) });
  const schema = closedObject({
    version: Type.String({
      pattern: '^1\\.\\d+$',
      description: '1.<number>, such as 1.0: the version of the format that this release reads',
    }),
    ...trees.root.members('optional'),
    server: Type.Optional(closedObject(trees.server.members('optional'), 'Where and for whom it listens')),
    settings: Type.Optional(
      closedObject(
        {
          ...trees.settings.members('optional'),
          ...(state === undefined ? {} : { state: Type.Optional(state) }),
          ...(signer === undefined ? {} : { signer: Type.Optional(signer) }),
          plugins: Type.Optional(PluginsSchema),
        },
        'What applies to all APIs',
      ),
    ),
    apis: Type.Array(api, { minItems: 1, description: 'Upstream APIs' }),
  });
  return { schema, findings: claims.findings };
}

function apiSchema(trees: Readonly<Record<Level, KeyTree>>, modes: string[], shared: TProperties): TSchema {
  const endpoint = closedObject({
    name: Type.String({ minLength: 1, description: 'Human-readable, unique within the API' }),
    description: Type.Optional(Type.String({ description: 'For clients and editors; no effect on requests' })),
    ...(modes.length === 0
      ? {}
      : { mode: Type.Optional(Type.Enum(modes, { description: 'How the answer travels; default sync' })) }),
    ...shared,
    ...trees.endpoint.members('as declared'),
  });
  return closedObject({
    name: Type.String({ minLength: 1, description: 'Human-readable, unique' }),
    ...shared,
    ...trees.api.members('as declared'),
    endpoints: Type.Array(endpoint, { minItems: 1, description: 'What clients may ask for' }),
  });
}

function modeNames(definitions: readonly Definition[], claims: Claims): string[] {
  return definitions.flatMap((definition) => {
    return (definition.modes ?? []).filter((mode) => claims.claim(`mode "${mode}"`, plugin(definition)));
  });
}

/** What definitions have by a type that no other has. */
function byType<T>(
  definitions: readonly Definition[],
  claims: Claims,
  kind: string,
  of: (definition: Definition) => Readonly<Record<string, T>> | undefined,
): [type: string, T][] {
  return definitions.flatMap((definition) =>
    Object.entries(of(definition) ?? {}).filter(([type]) => claims.claim(`${kind} "${type}"`, plugin(definition))),
  );
}

/** One object or a list of them, told apart by `type`. */
function authSchema(definitions: readonly Definition[], claims: Claims): TSchema | undefined {
  const types = byType(definitions, claims, 'auth type', ({ auth }) => auth);
  if (types.length === 0) return undefined;
  const one = oneOf(types.map(([type, schema]) => variant(type, schema)));
  return Type.Union([one, Type.Array(one, { minItems: 1 })], {
    description: 'Who may ask; any one method is enough; default free',
  });
}

/** What is kept in the process, or an engine, told apart by `type`. */
function stateSchema(definitions: readonly Definition[], claims: Claims): TSchema | undefined {
  const types = byType(definitions, claims, 'state engine', ({ engines }) => engines);
  if (types.length === 0) return undefined;
  return Type.Union([Type.Literal(IN_PROCESS), ...types.map(([type, { schema }]) => variant(type, schema))], {
    description: 'Where payments, async requests, limits and cached answers are kept; default memory',
  });
}

/** Told apart by `type`; what comes next is one of the same kinds. */
function signerSchema(definitions: readonly Definition[], claims: Claims): TSchema | undefined {
  const types = byType(definitions, claims, 'signer', ({ signers }) => signers);
  if (types.length === 0) return undefined;
  const each = (further: TProperties) =>
    oneOf(types.map(([type, { schema, local }]) => variant(type, schema, local ? further : { ...LIMITS, ...further })));
  const description = 'Signs beside it where answers carry "signatures", and takes its place one day';
  return withMembers(each({ next: Type.Optional(withMembers(each({}), { description })) }), {
    description: 'Who signs answers; default the key of the environment',
  });
}

/** What bounds the use of any signer outside the process. */
const LIMITS: TProperties = {
  timeout: Type.Optional(
    millisecondsSchema('Milliseconds for a signature, the wait for its turn included; default 5000'),
  ),
  concurrency: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'Signatures that are asked for at once; default 16' }),
  ),
};

function oneOf(variants: readonly TSchema[]): TSchema {
  return variants.length === 1 && variants[0] !== undefined ? variants[0] : Type.Union([...variants]);
}

function variant(type: string, schema: TSchema, further: TProperties = {}): TSchema {
  const own = close(schema);
  const { properties, required } = isRecord(own) ? own : {};
  return withMembers(own, {
    type: 'object',
    required: ['type', ...(Array.isArray(required) ? required : [])],
    properties: { ...(isRecord(properties) ? properties : {}), ...further, type: Type.Literal(type) },
    additionalProperties: false,
  });
}
