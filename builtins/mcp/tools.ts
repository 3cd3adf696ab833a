import type { Tool } from '@modelcontextprotocol/server';
import { isRecord } from '../../lib/json/value.ts';
import { keys } from '../../plugins-sdk/config.ts';
import type { Endpoint, Services } from '../../plugins-sdk/index.ts';
import type { OpenApiObject, ServiceDescription } from '../../plugins-sdk/openapi.ts';
import { bodySchemaOf, memberAt, sentenceOf } from '../shared/described.ts';
import { labelOf, toolName } from './settings.ts';

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const COMPONENTS = '#/components/schemas/';

/** The prefix of this service's members of `_meta`. */
export const META = 'signed-data-proxy';

/** An endpoint as a tool, with how to verify its answers. */
export type EndpointTool = ReturnType<typeof toolsOf>[number];

/** Replaces a schema's references by their targets, so that it needs no other document. */
function whole(schema: unknown, schemas: unknown): unknown {
  if (Array.isArray(schema)) return schema.map((member) => whole(member, schemas));
  if (!isRecord(schema)) return schema;
  const { $ref } = schema;
  const members = Object.entries(schema).map(([name, member]) => [name, whole(member, schemas)] as const);
  if (typeof $ref !== 'string' || !$ref.startsWith(COMPONENTS) || !isRecord(schemas))
    return Object.fromEntries(members);
  const target = whole(schemas[$ref.slice(COMPONENTS.length)], schemas);
  return { ...Object(target), ...Object.fromEntries(members.filter(([name]) => name !== '$ref')) };
}

/** Shortens a member's schema: models read all of it, and few need the inside of a proof. */
function shortened([name, schema]: [string, unknown]): [string, unknown] {
  const { type, description, ...rest } = Object(schema);
  return [name, type === 'object' || type === 'array' ? { type, description } : { type, description, ...rest }];
}

/** Makes the schema of a tool's result: the signed answer, or the payment's terms if the endpoint costs something. */
function outputSchema(endpoint: Endpoint, { document, auth }: ServiceDescription): Tool['outputSchema'] {
  const schemas = memberAt(document, 'components', 'schemas');
  const answer = memberAt(schemas, keys.encoding.of(endpoint) ? 'EncodedAnswer' : 'RawAnswer');
  const terms = endpoint.auth.flatMap(({ type }) => auth.get(type)?.responses?.[402]?.schema ?? []);
  const members = Object.entries(Object(memberAt(whole(answer, schemas), 'properties'))).map(shortened);
  // `data` is not required, because a plugin may encode under another name.
  const required = ['node', 'endpointId', 'timestamp', 'signature'];
  const signed = { type: 'object', properties: Object.fromEntries(members), required };
  if (terms.length === 0) return { $schema: DIALECT, ...signed };
  return { $schema: DIALECT, type: 'object', anyOf: [signed, ...terms.map((schema) => whole(schema, schemas))] };
}

function inputSchema(endpoint: Endpoint, { document }: ServiceDescription): Tool['inputSchema'] {
  const parameters = memberAt(bodySchemaOf(document, endpoint), 'properties', 'parameters');
  const schemas = memberAt(document, 'components', 'schemas');
  return { $schema: DIALECT, ...Object(whole(parameters, schemas)), type: 'object' };
}

function encodingText(endpoint: Endpoint): string {
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return 'The answer is signed; `rawData` is what the upstream said.';
  const { type, path, times, combine } = encoding;
  if ([type, path, times].includes('*')) return 'The answer is signed; `data` is ABI-encoded as the request chooses.';
  const factor = times === undefined ? '' : `, times ${times}`;
  const what = combine === undefined ? 'what' : `the ${combine} of what`;
  return `The answer is signed; \`data\` is the ABI encoding of (${type}) of ${what} is at ${path}${factor}.`;
}

function accessText(endpoint: Endpoint, { auth }: ServiceDescription): string {
  const ways = endpoint.auth.map((method) => {
    const { scheme, title = method.type, prices } = auth.get(method.type) ?? { scheme: {} };
    const costs = (prices?.(method) ?? []).map(
      ({ amount, max, token, network }) =>
        `${amount}${max === undefined ? '' : ` to ${max}`} of ${token} on ${network}`,
    );
    return { isOpen: scheme === undefined, text: costs.length > 0 ? `${title}: ${costs.join(' or ')}` : title };
  });
  if (ways.some(({ isOpen }) => isOpen)) return '';
  return `It needs ${ways.map(({ text }) => text).join(', or ')}.`;
}

function verificationOf(endpoint: Endpoint, signer: string): OpenApiObject {
  const isRaw = keys.encoding.of(endpoint) === undefined;
  return {
    ...{ signer, endpointId: endpoint.id },
    digest: 'keccak256(abi.encodePacked(bytes32 endpointId, uint256 timestamp, bytes data))',
    data: isRaw ? 'keccak256 of the UTF-8 text of the canonical JSON (RFC 8785) of rawData' : 'data',
    signature: 'EIP-191 personal signature of the digest; compare signer and endpointId with those that you expect',
  };
}

/** Makes a tool of each endpoint. */
export function toolsOf(endpoints: readonly Endpoint[], { describe, node }: Services) {
  const description = describe();
  return endpoints.map((endpoint) => {
    const { description: said } = endpoint.block;
    const about = typeof said === 'string' && said !== '' ? sentenceOf(said) : '';
    const texts = [about, encodingText(endpoint), accessText(endpoint, description)];
    const tool: Tool = {
      name: toolName(endpoint),
      title: labelOf(endpoint),
      description: texts.filter((text) => text !== '').join(' '),
      inputSchema: inputSchema(endpoint, description),
      outputSchema: outputSchema(endpoint, description),
      annotations: { readOnlyHint: (keys.method.of(endpoint) ?? 'GET') === 'GET', openWorldHint: true },
      _meta: { [`${META}/verification`]: verificationOf(endpoint, node) },
    };
    return { endpoint, tool };
  });
}
