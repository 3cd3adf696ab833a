/**
 * The extension `bazaar` of x402, with which facilitators list what is sold: what the public library's
 * `declareDiscoveryExtension` makes, with the method. That library would bring viem, ajv and more for this one object.
 */
import { isRecord } from '../../lib/json/value.ts';
import { compileSchema } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import type { OpenApiObject } from '../../plugins-sdk/openapi.ts';
import { bodySchemaOf, memberAt, operationOf } from '../shared/described.ts';

/** What is said of a request, and of its answer. */
interface Discovered {
  readonly inputSchema: object;
  readonly input: unknown;
  readonly example?: unknown;
}

const text = { type: 'string' };

function bazaarExtension({ inputSchema, input, example }: Discovered) {
  const isShown = example !== undefined;
  const asked = {
    type: { ...text, const: 'http' },
    method: { ...text, enum: ['POST'] },
    bodyType: { ...text, enum: ['json', 'form-data', 'text'] },
    body: inputSchema,
  };
  const answered = { type: 'object', properties: { type: text, example: { type: 'object' } }, required: ['type'] };
  const properties = {
    input: { type: 'object', properties: asked, required: Object.keys(asked), additionalProperties: false },
    ...(isShown && { output: answered }),
  };
  const $schema = 'https://json-schema.org/draft/2020-12/schema';
  return {
    info: {
      input: { type: 'http', bodyType: 'json', body: input, method: 'POST' },
      ...(isShown && { output: { type: 'json', example } }),
    },
    schema: { $schema, type: 'object', properties, required: ['input'] },
  };
}

/** What the OpenAPI document says of an endpoint. */
export function bazaarOf(document: OpenApiObject, endpoint: Pick<Endpoint, 'id'>) {
  const operation = operationOf(document, endpoint);
  const asked = askedOf(bodySchemaOf(document, endpoint), document);
  const answered = memberAt(operation, 'responses');
  const content = memberAt(memberAt(answered, '200') ?? memberAt(answered, '202'), 'content');
  const [media] = isRecord(content) ? Object.values(content) : [];
  const schema = memberAt(media, 'schema');
  const example = sampleOf(memberAt(schema, 'contentSchema') ?? schema, document);
  const known = isRecord(example)
    ? { example: { ...example, ...('endpointId' in example && { endpointId: endpoint.id }) } }
    : {};
  return bazaarExtension({ ...asked, ...known });
}

const ANYTHING = { type: 'object' };

/** An input that fits its schema. Facilitators take no other one, and no reference out of the schema. */
function askedOf(schema: unknown, document: OpenApiObject): Discovered {
  const nothing = { inputSchema: ANYTHING, input: {} };
  if (!isRecord(schema) || /"\$(?:ref|id)":/.test(JSON.stringify(schema))) return nothing;
  const compiled = compileSchema(schema);
  const input = sampleOf(schema, document);
  return compiled?.Check(input) === true ? { inputSchema: schema, input } : nothing;
}

/** A value of the kind that a schema describes; it may not fit. */
function sampleOf(schema: unknown, document: OpenApiObject): unknown {
  if (!isRecord(schema)) return {};
  const { $ref, type, minimum = 0, pattern, examples, anyOf, oneOf } = schema;
  if (typeof $ref === 'string') return sampleOf(memberAt(document, ...$ref.split('/').slice(1)), document);
  const [given] = [schema.default, schema.const, firstOf(examples), firstOf(schema.enum)].filter(isGiven);
  if (given !== undefined) return given;
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return sampleOf(choices[0], document);
  const samples = { string: sampleText(pattern), integer: minimum, number: minimum, boolean: true, array: [] };
  const kind = Array.isArray(type) ? type[0] : type;
  return memberAt(samples, String(kind)) ?? sampleObject(schema, document);
}

const isGiven = (value: unknown) => value !== undefined;
const firstOf = (list: unknown): unknown => (Array.isArray(list) ? list[0] : undefined);

function sampleText(pattern: unknown): string {
  const [, digits] = /^\^0x.*\{(\d{1,4})\}/.exec(String(pattern)) ?? [];
  return digits === undefined ? 'text' : `0x${'0'.repeat(Number(digits))}`;
}

function sampleObject({ required, properties }: Readonly<Record<string, unknown>>, document: OpenApiObject) {
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.fromEntries(names.map((name) => [name, sampleOf(memberAt(properties, String(name)), document)]));
}
