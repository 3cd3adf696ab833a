import type { PublicEndpoint, ReservedParameter } from '../endpoint.ts';
import type { Content, Field } from './fields.ts';

/** A request to an endpoint, as a form makes it, and the encoding of its answer. */
export type Asked = ReturnType<typeof requestOf>;

/** Reads a field's text; an empty text adds nothing to the request. */
export function contentOf({ required, control, read }: Field, text: string): Content {
  const isEmpty = (control === 'lines' ? text.trim() : text) === '';
  if (!isEmpty) return read(text);
  return required ? { problem: 'This is required.' } : { value: undefined };
}

/** Makes a request of the fields, without those that are empty or wrong. */
export function requestOf(endpoint: PublicEndpoint, fields: readonly Field[], textOf: (field: Field) => string) {
  const given = fields.flatMap((field) => {
    const content = contentOf(field, textOf(field));
    return 'value' in content && content.value !== undefined ? [{ ...field, value: content.value }] : [];
  });
  const members = given.filter(({ isHeader }) => !isHeader);
  const parameters = `{${members.map(({ name, value }) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
  const headers = given.filter(({ isHeader }) => isHeader).map(({ name, value }) => [name, value] as const);
  const values: Readonly<Record<string, unknown>> = JSON.parse(parameters);
  return {
    endpointId: endpoint.id,
    body: `{"parameters":${parameters}}`,
    // Those with credentials.
    headers: Object.fromEntries(headers),
    ...encodingOf(endpoint, values),
    // Those that a receipt must cover; none if the endpoint makes none.
    parameters: coveredBy(endpoint, values),
  };
}

/** Returns the comma-separated lists of the encoding, with the client's choices in the place of `*`; none for a raw answer. */
function encodingOf({ encoding }: PublicEndpoint, values: Readonly<Record<string, unknown>>) {
  const chosen = (pinned: string | undefined, name: ReservedParameter) => {
    const value = pinned === '*' ? values[name] : pinned;
    return typeof value === 'string' ? value : undefined;
  };
  const { type, times, path } = encoding ?? {};
  return { types: chosen(type, '_type'), times: chosen(times, '_times'), paths: chosen(path, '_path') };
}

/** Returns the parameters that a receipt covers: the given values, and the defaults of the others. */
function coveredBy({ receipt, reserved, parameters }: PublicEndpoint, values: object) {
  if (receipt === undefined) return undefined;
  const defaults = parameters.map(({ name, default: fallback }) => [name, fallback] as const);
  const known = new Set<string>([...receipt, ...reserved]);
  const all = [...defaults.filter(([, fallback]) => fallback !== undefined), ...Object.entries(values)];
  return Object.fromEntries(all.filter(([name]) => known.has(name)));
}
