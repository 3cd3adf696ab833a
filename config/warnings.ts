import { plainDigits } from '../lib/json/numbers.ts';
import { type EndpointDraft, type Finding, warningAt } from '../plugins-sdk/define.ts';
import { isWithin, walk } from '../plugins-sdk/schema/path.ts';
import { parametersIn } from './endpoints.ts';
import type { Interpolated } from './interpolate.ts';

/** Warns of endpoints that are free for everyone because no `auth` is set. */
export function freeEndpoints(endpoints: readonly EndpointDraft[]): Finding[] {
  return endpoints
    .filter(({ block, apiBlock }) => block.auth === undefined && apiBlock.auth === undefined)
    .map(({ api, name, path }) =>
      warningAt(path, `no auth on the API or the endpoint: "${api}/${name}" is free for everyone`),
    );
}

/** Warns of numbers that are not sent as they are written, such as `1.10`. */
export function rewrittenNumbers({ value, written }: Interpolated): Finding[] {
  const findings: Finding[] = [];
  for (const { block, path, endpoint } of parametersIn(value)) {
    // A form carries texts, as a query does: numbers in both are written in the same way.
    const isJson = block.in === 'body' && endpoint.bodyType !== 'form';
    const check = (at: string) => {
      const text = written.get(at);
      const sent = isJson ? JSON.stringify(Number(text)) : plainDigits(Number(text));
      if (text === undefined || sent === text) return;
      const what = block.secret === true ? 'the number is not sent as written' : `${text} is sent as ${sent}`;
      findings.push(warningAt(at, `${what}: write it in quotes to send that text`));
    };
    walk(block.fixed, check, `${path}.fixed`);
    walk(block.default, check, `${path}.default`);
  }
  return findings;
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
  const secrets = parametersIn(config).flatMap(({ block, path }) => (block.secret === true ? [path] : []));
  const shown = [...references.keys()].filter((path) => !secrets.some((secret) => isWithin(path, secret)));
  return PUBLIC.flatMap(([place, message]) =>
    shown.filter((path) => place.test(path)).map((path) => warningAt(path, message)),
  );
}
