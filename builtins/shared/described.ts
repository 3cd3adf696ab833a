import { isRecord } from '../../lib/json/value.ts';
import type { OpenApiObject } from '../../plugins-sdk/openapi.ts';

/** What stands in a JSON document at a path; `undefined` where there is nothing. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}

/** The operation at which an endpoint is asked. */
export function operationOf(document: OpenApiObject, { id }: { readonly id: string }): unknown {
  return memberAt(document, 'paths', `/endpoints/${id}`, 'post');
}

/** The schema of the body with which an endpoint is asked. */
export function bodySchemaOf(document: OpenApiObject, endpoint: { readonly id: string }): unknown {
  return memberAt(operationOf(document, endpoint), 'requestBody', 'content', 'application/json', 'schema');
}

/** What an operator says, as a sentence before others. */
export function sentenceOf(text: string): string {
  return /[.!?:;]$/.test(text) ? text : `${text}.`;
}

/** How many endpoints a sentence names. */
const NAMED = 3;

/** Endpoints as a sentence names them: a few, and how many there are more. */
export function namesOf(endpoints: readonly { readonly api: string; readonly name: string }[]): string {
  const names = endpoints.slice(0, NAMED).map(({ api, name }) => `${api}/${name}`);
  const more = endpoints.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
