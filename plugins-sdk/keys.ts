import { type Static, type TNumberOptions, Type } from 'typebox';
import type { Endpoint, Json } from '../kernel/values.ts';
import { LONGEST_TIMER } from '../lib/time.ts';
import { configKey, optionalKey } from './config-key.ts';
import { closedObject } from './schema/close.ts';
import { DURATION } from './schema/duration.ts';

/** Returns the schema of an EVM address. `checkAddress` checks its checksum. */
export function addressSchema(description: string) {
  return Type.String({ pattern: '^0x[0-9a-fA-F]{40}$', description });
}
/** The schema of any EVM address, by `addressSchema`. */
export const AddressSchema = addressSchema('an address, 0x and 40 hex digits');

/**
 * Returns the schema of a duration that a timer can hold, in milliseconds. The config file also takes a text such as `500ms`,
 * `10s`, `2m`, `1h` or `1d`.
 * @param options of the integer. Numbers below `duration` (default 100) cause a warning, since they look like seconds.
 */
export function millisecondsSchema(description: string, options: TNumberOptions & { duration?: number } = {}) {
  return Type.Integer({ minimum: 1, maximum: LONGEST_TIMER, [DURATION]: 100, ...options, description });
}

/** Returns the schema of an operator's value. Other code checks where it may be a list or an object. */
function pinned(description: string) {
  const nested = [Type.Unsafe({ type: 'array' }), Type.Unsafe({ type: 'object' })];
  return Type.Unsafe<Json>(Type.Union([Type.String(), Type.Number(), Type.Boolean(), ...nested], { description }));
}

const ParameterSchema = closedObject({
  name: Type.String({ minLength: 1, description: 'Name as the upstream API expects it' }),
  in: Type.Optional(
    Type.Enum(['query', 'header', 'path', 'cookie', 'body', 'none'], {
      description: 'Where it is sent; none: only used in paths; default query',
    }),
  ),
  required: Type.Optional(Type.Boolean({ description: 'The client must give a value; default false' })),
  fixed: Type.Optional(pinned('Always sent, whatever the client says')),
  default: Type.Optional(pinned('Sent where the client gives no value')),
  schema: Type.Optional(
    Type.Unsafe<Readonly<Record<string, Json>>>({
      type: 'object',
      description: 'JSON Schema of values from clients',
    }),
  ),
  map: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      minProperties: 1,
      description: 'Upstream value for each text from clients, or {file: symbols.yaml}',
    }),
  ),
  style: Type.Optional(
    Type.Enum(['repeat', 'comma'], {
      description: 'How a list is sent in a query: a=1&a=2 or a=1,2; default one text, with a warning',
    }),
  ),
  nested: Type.Optional(Type.Boolean({ description: 'Dots in the name lead into objects of the body; default false' })),
  secret: Type.Optional(Type.Boolean({ description: 'Keeps the value out of the endpoint ID; default false' })),
  description: Type.Optional(Type.String({ description: 'Shown to clients; no effect on requests' })),
});
/** A parameter as declared in the config. */
export type Parameter = Static<typeof ParameterSchema>;

const Basic = closedObject({
  basic: closedObject(
    {
      user: Type.String({ description: 'Without a colon' }),
      password: Type.String({ description: 'Keep it in a variable' }),
    },
    'Sent as Basic and the base64 of user:password',
  ),
});

/** The config keys that several plugins read. One plugin owns each key, and may check its values further. */
export const keys = {
  url: configKey('api', 'url', Type.String({ description: 'Base URL of the upstream' })),
  headers: optionalKey(
    'api',
    'headers',
    Type.Record(Type.String(), Type.Union([Type.String(), Basic]), {
      description: 'Sent with every upstream request: texts, or {basic: {user, password}}',
    }),
  ),
  timeout: optionalKey(
    'api',
    'timeout',
    Type.Number({
      exclusiveMinimum: 0,
      [DURATION]: 100,
      description: 'Deadline of all upstream calls of a request; default 10s',
    }),
  ),
  path: configKey(
    'endpoint',
    'path',
    Type.String({ description: 'Appended to the URL; may hold {parameter} placeholders' }),
  ),
  method: optionalKey(
    'endpoint',
    'method',
    Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'Of the upstream request; default GET' }),
  ),
  parameters: optionalKey(
    'endpoint',
    'parameters',
    Type.Array(ParameterSchema, { description: 'What is sent upstream; default none' }),
  ),
  encoding: optionalKey(
    'endpoint',
    'encoding',
    closedObject({
      type: Type.String({ minLength: 1 }),
      path: Type.String({ minLength: 1 }),
      times: Type.Optional(Type.String()),
      combine: Type.Optional(Type.Enum(['mean', 'median', 'min', 'max'])),
      exact: Type.Optional(Type.Boolean()),
    }),
  ),
};

/** Returns the URL of an endpoint's upstream, without a trailing slash. */
export function baseUrl(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): string {
  return (keys.url.of(endpoint) ?? '').replace(/\/$/, '');
}

/** Returns whether a receipt covers a declared parameter: one that is neither fixed nor secret. */
export function isCovered({ fixed, secret }: Pick<Parameter, 'fixed' | 'secret'>): boolean {
  return fixed === undefined && secret !== true;
}

/** The config key `strictParameters` of an endpoint. */
export const strictKey = optionalKey(
  'apiOrEndpoint',
  'strictParameters',
  Type.Boolean({
    description: 'Refuses undeclared parameters; default false',
  }),
);

const FIELDS = ['type', 'path', 'times'] as const;

/** Returns the reserved parameters that an endpoint takes from clients, because its `encoding` has `*` there. */
export function reservedParameters(
  endpoint: Pick<Endpoint, 'block' | 'apiBlock'>,
): readonly ('_type' | '_path' | '_times')[] {
  const encoding = keys.encoding.of(endpoint);
  return FIELDS.flatMap((field) => (encoding?.[field] === '*' ? [`_${field}` as const] : []));
}

/** The config key `settings.state`, to be read only. If absent or a text, state is in memory. */
export const stateKey = optionalKey('settings', 'state', Type.Unknown());

/** The config key `settings.signer`. If absent, the signer is the environment's key. */
export const signerKey = optionalKey('settings', 'signer', Type.Unknown());

/** The config key `receipt` of an endpoint. */
export const receiptKey = optionalKey(
  'apiOrEndpoint',
  'receipt',
  Type.Boolean({ description: 'Adds a signed receipt of the request; default false' }),
);

/** The default `timeout` of an API. */
export const DEFAULT_TIMEOUT_MS = 10_000;
