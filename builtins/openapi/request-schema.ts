import type { DescribedOperation, OpenApiObject } from '../../plugins-sdk/openapi.ts';
import { Claims, type Said } from './claims.ts';

/** The schema of a request's body, of what plugins say of its parameters. @param operation what it is called where two plugins collide. */
export function requestSchema(operation: string, parts: readonly Said<DescribedOperation>[]): OpenApiObject {
  const properties = new Claims<OpenApiObject>(`parameter of ${operation}`);
  for (const { plugin, value } of parts) properties.addAll(plugin, value.parameters);
  const required = [...new Set(parts.flatMap(({ value }) => value.required ?? []))];
  const strict = parts.some(({ value }) => value.strict === true);
  const inner = {
    type: 'object',
    description: `Parameters that are not listed are ${strict ? 'refused' : 'ignored'}`,
    ...(required.length === 0 ? {} : { required }),
    properties: properties.toObject(),
    additionalProperties: !strict,
  };
  return {
    type: 'object',
    ...(required.length === 0 && !strict ? {} : { required: ['parameters'] }),
    properties: { parameters: inner },
  };
}
