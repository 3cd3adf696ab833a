import { plainDigits } from '../lib/json/numbers.ts';
import { type EndpointDraft, type Finding, warningAt } from '../plugins-sdk/define.ts';
import { childPath, isRecord, isWithin, walk } from '../plugins-sdk/schema/path.ts';
import type { Interpolated } from './interpolate.ts';
import { PARAMETER } from './map-files.ts';
import { writtenNumbers } from './tree.ts';

/** Warns of endpoints that are free for everyone because no `auth` is set. */
export function freeEndpoints(endpoints: readonly EndpointDraft[]): Finding[] {
  return endpoints
    .filter(({ block, apiBlock }) => block.auth === undefined && apiBlock.auth === undefined)
    .map(({ api, name, path }) =>
      warningAt(path, `no auth on the API or the endpoint: "${api}/${name}" is free for everyone`),
    );
}

/** Warns of values that do not mean what they seem to. @param tree the content of the file, before interpolation. */
export function misleadingTexts(tree: unknown): Finding[] {
  const findings: Finding[] = [];
  // The parameter that the walk has reached last.
  let parameter: Readonly<Record<string, unknown>> = {};
  let isForm = false;
  walk(tree, (path, value) => {
    const [, name] = (typeof value === 'string' && SHELL_VARIABLE.exec(value)) || [];
    if (name !== undefined)
      findings.push(warningAt(path, `the text $${name} is taken as it is: a variable is \${${name}}`));
    if (isRecord(value) && ENDPOINT.test(path)) isForm = value.bodyType === 'form';
    // A form carries texts, as a query does: numbers in both are written in the same way.
    if (isRecord(value) && PARAMETER.test(path)) parameter = isForm ? { ...value, in: 'query' } : value;
    if (typeof value === 'object' && value !== null) findings.push(...rewrittenNumbers(path, value, parameter));
  });
  return findings;
}

const SHELL_VARIABLE = /^\$([A-Z_][A-Z0-9_]+)$/;
const ENDPOINT = /^apis\[\d+\]\.endpoints\[\d+\]$/;
/** Matches the path of a value that a parameter sends, or of a value inside it. */
const SENT = new RegExp(`${PARAMETER.source.slice(0, -1)}\\.(?:fixed|default)\\b`);

/** Warns of numbers that are not sent as they are written, such as `1.10`. */
function rewrittenNumbers(
  path: string,
  holder: object,
  { in: place, secret }: Readonly<Record<string, unknown>>,
): Finding[] {
  return [...writtenNumbers(holder)].flatMap(([key, written]) => {
    const at = childPath(path, key);
    const value = Reflect.get(holder, key);
    const sent = place === 'body' ? JSON.stringify(value) : plainDigits(Number(value));
    if (!SENT.test(at) || sent === written) return [];
    const what = secret === true ? 'the number is not sent as written' : `${written} is sent as ${sent}`;
    return [warningAt(at, `${what}: write it in quotes to send that text`)];
  });
}

/** The paths at which the value of a variable becomes public, with the warning. */
const PUBLIC: readonly (readonly [RegExp, string])[] = [
  [/^apis\[\d+\]\.endpoints\[\d+\]\.parameters\[\d+\]\.schema\b/, 'contains a variable: clients see its value'],
  [
    /^apis\[\d+\]\.(?:url|endpoints\[\d+\]\.(?:path|encoding\.path|parameters\[\d+\]\.(?:default\b.*|map\b(?!\.file$).*)))$/,
    'contains a variable: its value enters the endpoint ID, and --explain shows it',
  ],
];

/** Warns of variables whose values enter endpoint IDs or are shown to clients. Variables in secret parameters are exempt. */
export function publicVariables({ references }: Interpolated, config: Readonly<Record<string, unknown>>): Finding[] {
  const secrets: string[] = [];
  walk(config, (path, value) => {
    if (PARAMETER.test(path) && isRecord(value) && value.secret === true) secrets.push(path);
  });
  const shown = [...references.keys()].filter((path) => !secrets.some((secret) => isWithin(path, secret)));
  return PUBLIC.flatMap(([place, message]) =>
    shown.filter((path) => place.test(path)).map((path) => warningAt(path, message)),
  );
}
