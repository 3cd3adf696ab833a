import type { PublicEndpoint, ReservedParameter } from '../endpoint.ts';
import type { ServiceRequest } from './call.ts';
import type { Content, Field } from './fields.ts';

/** A request, and how what it asked for is encoded. */
export interface Asked extends ServiceRequest {
  /** The types of the values, where the answer is encoded. */
  readonly types?: string;
  readonly times?: string;
  /** Where the upstream's answer has the values. */
  readonly paths?: string;
  /** What a receipt must cover, where the endpoint makes receipts. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** What a field adds to a request, given its text; an empty text adds nothing. */
export function contentOf({ required, control, read }: Field, text: string): Content {
  const isEmpty = (control === 'lines' ? text.trim() : text) === '';
  if (!isEmpty) return read(text);
  return required ? { problem: 'This is required.' } : { value: undefined };
}

/** The request that fields make, as far as they are filled in and right. */
export function requestOf(endpoint: PublicEndpoint, fields: readonly Field[], textOf: (field: Field) => string): Asked {
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
    headers: Object.fromEntries(headers),
    ...encodingOf(endpoint, values),
    ...coveredOf(endpoint, values),
  };
}

/** What was chosen where the operator left it open. */
function encodingOf({ encoding }: PublicEndpoint, values: Readonly<Record<string, unknown>>): Partial<Asked> {
  if (encoding === undefined) return {};
  const chosen = (pinned: string | undefined, name: ReservedParameter) => {
    const value = pinned === '*' ? values[name] : pinned;
    return typeof value === 'string' ? value : undefined;
  };
  const types = chosen(encoding.type, '_type');
  const times = chosen(encoding.times, '_times');
  const paths = chosen(encoding.path, '_path');
  return { ...(types && { types }), ...(times && { times }), ...(paths && { paths }) };
}

/** What the service fills in where nothing was given, and what was. */
function coveredOf({ receipt, reserved, parameters }: PublicEndpoint, values: object): Partial<Asked> {
  if (receipt === undefined) return {};
  const defaults = parameters.flatMap(({ name, default: fallback }): [string, unknown][] =>
    fallback === undefined ? [] : [[name, fallback]],
  );
  const known = new Set<string>([...receipt, ...reserved]);
  const all = [...defaults, ...Object.entries(values)];
  return { parameters: Object.fromEntries(all.filter(([name]) => known.has(name))) };
}
