import { isRecord } from '../../lib/json/value.ts';
import type { OpenApiObject } from '../../plugins-sdk/openapi.ts';

/** Returns the value at a path of a JSON document; undefined where there is none. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}

/** Returns the OpenAPI operation of an endpoint. */
export function operationOf(document: OpenApiObject, { id }: { readonly id: string }): unknown {
  return memberAt(document, 'paths', `/endpoints/${id}`, 'post');
}

/** Returns the schema of an endpoint's request body. */
export function bodySchemaOf(document: OpenApiObject, endpoint: { readonly id: string }): unknown {
  return memberAt(operationOf(document, endpoint), 'requestBody', 'content', 'application/json', 'schema');
}

/** Ends an operator's text like a sentence, so that another can follow. */
export function sentenceOf(text: string): string {
  return /[.!?:;]$/.test(text) ? text : `${text}.`;
}

/** The most endpoints that a sentence names. */
const NAMED = 3;

/** Names a few endpoints for a sentence, and counts the rest. */
export function namesOf(endpoints: readonly { readonly api: string; readonly name: string }[]): string {
  const names = endpoints.slice(0, NAMED).map(({ api, name }) => `${api}/${name}`);
  const more = endpoints.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
