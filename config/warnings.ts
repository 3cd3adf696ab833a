import { plainDigits } from '../lib/json/numbers.ts';
import type { EndpointDraft, Finding } from '../plugins-sdk/define.ts';
import { childPath, isRecord, isWithin, walk } from '../plugins-sdk/schema/path.ts';
import { warningAt } from './findings.ts';
import type { Reference } from './interpolate.ts';
import { PARAMETER } from './map-files.ts';
import { writtenNumbers } from './tree.ts';

/** Endpoints that anybody may ask because nobody said otherwise. */
export function freeEndpoints(endpoints: readonly EndpointDraft[]): Finding[] {
  return endpoints
    .filter(({ block, apiBlock }) => block.auth === undefined && apiBlock.auth === undefined)
    .map(({ api, name, path }) =>
      warningAt(path, `no auth on the API or the endpoint: "${api}/${name}" is free for everyone`),
    );
}

/** What does not mean what it seems to. @param tree as it was read from the file. */
export function misleadingTexts(tree: unknown): Finding[] {
  const findings: Finding[] = [];
  // The one in which the walk is, or was last.
  let parameter: Readonly<Record<string, unknown>> = {};
  let isForm = false;
  walk(tree, (path, value) => {
    const [, name] = (typeof value === 'string' && SHELL_VARIABLE.exec(value)) || [];
    if (name !== undefined)
      findings.push(warningAt(path, `the text $${name} is taken as it is: a variable is \${${name}}`));
    if (isRecord(value) && ENDPOINT.test(path)) isForm = value.bodyType === 'form';
    // A form holds texts, as a query does.
    if (isRecord(value) && PARAMETER.test(path)) parameter = isForm ? { ...value, in: 'query' } : value;
    if (typeof value === 'object' && value !== null) findings.push(...rewrittenNumbers(path, value, parameter));
  });
  return findings;
}

const SHELL_VARIABLE = /^\$([A-Z_][A-Z0-9_]+)$/;
const ENDPOINT = /^apis\[\d+\]\.endpoints\[\d+\]$/;
/** The path of what a parameter sends, or of something in it. */
const SENT = new RegExp(`${PARAMETER.source.slice(0, -1)}\\.(?:fixed|default)\\b`);

/** Numbers that are sent otherwise than they are written, such as `1.10`, and those that lose leading zeros. */
function rewrittenNumbers(path: string, holder: object, parameter: Readonly<Record<string, unknown>>): Finding[] {
  return [...writtenNumbers(holder)].flatMap(([key, written]) => {
    const at = childPath(path, key);
    const isSent = SENT.test(at);
    const message = isSent ? sentOtherwise(parameter, Reflect.get(holder, key), written) : readOtherwise(written);
    return message === undefined ? [] : [warningAt(at, message)];
  });
}

function sentOtherwise({ in: place, secret }: Readonly<Record<string, unknown>>, value: unknown, written: string) {
  const sent = place === 'body' ? JSON.stringify(value) : plainDigits(Number(value));
  if (sent === written) return undefined;
  const what = secret === true ? 'the number is not sent as written' : `${written} is sent as ${sent}`;
  return `${what}: write it in quotes to send that text`;
}

/** What looks like an identifier. */
function readOtherwise(written: string): string | undefined {
  return /^[-+]?0\d/.test(written) ? `${written} is read as ${Number(written)}: write it so, or in quotes` : undefined;
}

/** What becomes of values of variables at these paths. */
const PUBLIC: readonly (readonly [RegExp, string])[] = [
  [/^apis\[\d+\]\.endpoints\[\d+\]\.parameters\[\d+\]\.schema\b/, 'contains a variable: clients see its value'],
  [
    /^apis\[\d+\]\.(?:url|endpoints\[\d+\]\.(?:path|encoding\.path|parameters\[\d+\]\.(?:default\b.*|map\b(?!\.file$).*)))$/,
    'contains a variable: its value enters the endpoint ID, and --explain shows it',
  ],
];

/** Variables whose values enter endpoint IDs, or are what clients are told of a parameter. */
export function publicVariables(
  references: ReadonlyMap<string, Reference>,
  config: Readonly<Record<string, unknown>>,
): Finding[] {
  const secrets: string[] = [];
  walk(config, (path, value) => {
    if (PARAMETER.test(path) && isRecord(value) && value.secret === true) secrets.push(path);
  });
  const shown = [...references.keys()].filter((path) => !secrets.some((secret) => isWithin(path, secret)));
  return PUBLIC.flatMap(([place, message]) =>
    shown.filter((path) => place.test(path)).map((path) => warningAt(path, message)),
  );
}
