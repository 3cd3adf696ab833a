import { closedObject, optionalKey } from '../../plugins-sdk/config.ts';
import { Type } from '../../plugins-sdk/index.ts';

/** The config key `encoding` with its full schema; other plugins read it as `keys.encoding`. */
export const encodingKey = optionalKey(
  'endpoint',
  'encoding',
  closedObject(
    {
      type: Type.String({ minLength: 1, description: 'Solidity type, a comma-separated list of them, or *' }),
      path: Type.String({ minLength: 1, description: 'JSONPath, a comma-separated list of them, or *' }),
      times: Type.Optional(Type.String({ description: 'Multiplier such as 1e18, a list of them, or *' })),
      combine: Type.Optional(
        Type.Enum(['mean', 'median', 'min', 'max'], {
          description: 'Makes one number of all that the paths find; default none',
        }),
      ),
      exact: Type.Optional(
        Type.Boolean({ description: 'Refuses numbers that the integer type would cut; default false' }),
      ),
    },
    'What is extracted and ABI-encoded; without it the JSON is signed',
  ),
);
