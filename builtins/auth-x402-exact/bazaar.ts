/**
 * Makes the x402 extension `bazaar`, by which facilitators list what is sold. It equals the result of the public library's
 * `declareDiscoveryExtension`, plus the method. That library would bring viem, ajv and more for this one object.
 */
import { isRecord } from '../../lib/json/value.ts';
import { compileSchema } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import type { OpenApiObject } from '../../plugins-sdk/openapi.ts';
import { bodySchemaOf, memberAt } from '../shared/described.ts';

const text = { type: 'string' };

/** Makes the extension from what the OpenAPI document says of an endpoint's requests. */
export function bazaarOf(document: OpenApiObject, endpoint: Pick<Endpoint, 'id'>) {
  const { schema, sample } = askedOf(bodySchemaOf(document, endpoint));
  const asked = {
    type: { ...text, const: 'http' },
    method: { ...text, enum: ['POST'] },
    bodyType: { ...text, enum: ['json', 'form-data', 'text'] },
    body: schema,
  };
  const input = { type: 'object', properties: asked, required: Object.keys(asked), additionalProperties: false };
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  return {
    info: { input: { type: 'http', bodyType: 'json', body: sample, method: 'POST' } },
    schema: { $schema, type: 'object', properties: { input }, required: ['input'] },
  };
}

/** Returns a schema and a sample that fits it. Facilitators accept no other sample, and no reference out of the schema. */
function askedOf(schema: unknown): { readonly schema: object; readonly sample: unknown } {
  const anything = { schema: { type: 'object' }, sample: {} };
  if (!isRecord(schema) || /"\$(?:ref|id)":/.test(JSON.stringify(schema))) return anything;
  const sample = sampleOf(schema);
  return compileSchema(schema)?.Check(sample) === true ? { schema, sample } : anything;
}

/** Makes a sample value of the type that a schema describes. It may still not fit the schema. */
function sampleOf(schema: unknown): unknown {
  if (!isRecord(schema)) return {};
  const { type, minimum = 0, anyOf, required, properties } = schema;
  const given = [schema.default, schema.const, firstOf(schema.examples), firstOf(schema.enum)];
  const sample = given.find((value) => value !== undefined);
  if (sample !== undefined) return sample;
  if (Array.isArray(anyOf)) return sampleOf(anyOf[0]);
  const samples = { string: 'text', integer: minimum, number: minimum, boolean: true, array: [] };
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  const members = names.map((name) => [name, sampleOf(memberAt(properties, String(name)))]);
  return memberAt(samples, String(firstOf(type) ?? type)) ?? Object.fromEntries(members);
}

function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}
