import { closedObject, millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import { type Json, type Static, Type } from '../../plugins-sdk/index.ts';

const FreshSchema = closedObject(
  {
    path: Type.String({ minLength: 1, description: "JSONPath of the answer's time" }),
    maxAge: millisecondsSchema('Largest distance of that time from now', { maximum: Number.MAX_SAFE_INTEGER }),
    unit: Type.Optional(
      Type.Enum(['s', 'ms', 'iso'], { description: 'Unix seconds or milliseconds, or text of RFC 3339; default s' }),
    ),
  },
  'How old the answer may be; default any',
);

/** The config key for checks of upstream answers. */
export const expectKey = optionalKey(
  'apiOrEndpoint',
  'expect',
  closedObject(
    {
      schema: Type.Optional(
        Type.Unsafe<Readonly<Record<string, Json>>>({ type: 'object', description: 'JSON Schema of the answer' }),
      ),
      fresh: Type.Optional(FreshSchema),
    },
    'What an upstream answer must be; default anything',
  ),
);

/** How old an answer may be, by a time in it. */
export type Fresh = Static<typeof FreshSchema>;
