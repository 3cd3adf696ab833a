import { type Static, Type } from 'typebox';
import { configKey } from './define.ts';

/** An EVM address; its checksum, if it has one, is checked apart from the schema. */
export const AddressSchema = Type.String({
  pattern: '^0x[0-9a-fA-F]{40}$',
  description: 'an address, 0x and 40 hex digits',
});

/** A time in milliseconds that a timer can hold. */
export const MillisecondsSchema = Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'milliseconds' });

const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);

export const ParameterSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'Name as the upstream API expects it' }),
    in: Type.Optional(
      Type.Enum(['query', 'header', 'path', 'cookie', 'body'], { description: 'Where it is sent; default query' }),
    ),
    required: Type.Optional(Type.Boolean({ description: 'The client must give a value; default false' })),
    fixed: Type.Optional(Scalar),
    default: Type.Optional(Scalar),
    secret: Type.Optional(Type.Boolean({ description: 'Keeps the value out of the endpoint ID; default false' })),
    description: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type Parameter = Static<typeof ParameterSchema>;

/** Config keys that more than one plugin reads. Each is owned by one of them. */
export const keys = {
  url: configKey('api', 'url', Type.String({ description: 'Base URL of the upstream, http or https' })),
  headers: configKey(
    'api',
    'headers',
    Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Sent on every upstream request' })),
  ),
  timeout: configKey('api', 'timeout', Type.Optional(MillisecondsSchema)),
  path: configKey(
    'endpoint',
    'path',
    Type.String({ description: 'Appended to the URL; may hold {parameter} placeholders' }),
  ),
  method: configKey('endpoint', 'method', Type.Optional(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']))),
  parameters: configKey('endpoint', 'parameters', Type.Optional(Type.Array(ParameterSchema))),
  encoding: configKey(
    'endpoint',
    'encoding',
    Type.Optional(
      Type.Object(
        {
          type: Type.String({ minLength: 1, description: 'Solidity type, a comma-separated list of them, or *' }),
          path: Type.String({ minLength: 1, description: 'JSONPath, a comma-separated list of them, or *' }),
          times: Type.Optional(Type.String({ description: 'Multiplier such as 1e18, a list of them, or *' })),
        },
        { additionalProperties: false },
      ),
    ),
  ),
};

/** Milliseconds of an upstream call when the API names no timeout. */
export const DEFAULT_TIMEOUT = 10_000;
