import type { DescribedResponse, Named, OpenApiObject } from './part.ts';

/** A reference to a component of the document. */
export function refTo(kind: 'schemas' | 'headers' | 'responses', name: string): OpenApiObject {
  return { $ref: `#/components/${kind}/${name}` };
}

/** Schema of a text that matches `pattern` as a whole. */
export function textSchema(pattern: string, description: string): OpenApiObject {
  return { type: 'string', pattern, description };
}

/** An object schema; all members are required but those named. */
export function objectSchema(description: string, properties: Named, optional: readonly string[] = []): OpenApiObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', description, required, properties };
}

/** An object schema with further required members in front. */
export function withMembers({ required, properties, ...rest }: OpenApiObject, members: Named): OpenApiObject {
  const others: readonly unknown[] = Array.isArray(required) ? required : [];
  return {
    ...rest,
    required: [...Object.keys(members), ...others],
    properties: { ...members, ...Object(properties) },
  };
}

/** Letters and digits of a text, joined by underscores. */
export function nameOf(label: string): string {
  return label.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

/** Headers of a response that must not be stored. */
export const noStore: Named = { 'Cache-Control': refTo('headers', 'NoStore') };

/** The response to an unexpected error. */
export const internalError: DescribedResponse = {
  name: 'InternalError',
  description: 'Nothing was signed; the log of the service says why',
  errors: ['Internal server error'],
};
