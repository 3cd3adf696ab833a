import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import type { Endpoint, Json } from '../kernel/values.ts';
import { keccak256, toHex } from '../lib/eth/hex.ts';
import { CanonicalJsonError, jcs } from '../lib/json/canonical-json.ts';
import { deepFreeze } from '../lib/json/value.ts';
import { type ConfigKey, validated } from '../plugins-sdk/config-key.ts';
import {
  type CheckContext,
  type Definition,
  type EndpointDraft,
  errorAt,
  type Finding,
  identityParts,
  warningAt,
} from '../plugins-sdk/define.ts';
import { warningOfShort } from '../plugins-sdk/schema/convert.ts';
import { explain } from '../plugins-sdk/schema/explain.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import { draftEndpoints, endpointsIn, ownerOf } from './endpoints.ts';
import type { Redact } from './findings.ts';
import { type Interpolated, standInFor } from './interpolate.ts';
import { budgetIn } from './plugins/check-definition.ts';
import type { PluginDraft } from './plugins/load.ts';
import { fill, hasDoubt, leafOf } from './variables.ts';

/** The config with its variables replaced, and with samples for those that are unset. */
export type View = ReturnType<typeof viewOf>;

/** @param keys those whose schemas are part of the schema. @param folder the folder of the config file. */
export function viewOf(source: Interpolated, schema: TSchema, keys: ReadonlySet<ConfigKey>, folder: string) {
  const references = [...source.references];
  const short: Finding[] = [];
  const config = deepFreeze(fill(source, schema, warningOfShort(leafOf(source), short)));
  const shapes = explain(schema, config, '', endpointsIn(config).length);
  /** Whether the text at a path is not what the operator meant. */
  const isDoubtful = (path: string): boolean => source.references.get(path)?.doubtful === true;
  const wrongShapes = shapes.filter(({ path }) => !isDoubtful(path));
  const contextOf = (of: typeof config): CheckContext =>
    Object.freeze({
      config: of,
      endpoints: Object.freeze(draftEndpoints(of, wrongShapes)),
      interpolated: (path: string) => references.some(([at]) => isWithin(at, path)),
      path: (relative: string) => resolve(folder, relative),
    });
  const context = contextOf(config);
  if (shapes.length === 0)
    for (const { block, apiBlock } of context.endpoints) validated.set(block, keys).set(apiBlock, keys);
  const isCertain = references.every(([, { doubtful }]) => !doubtful);
  return {
    config,
    context,
    /** The same context, with named stand-ins in place of samples. An ID depends on a variable if its text shows the stand-in. */
    named: isCertain ? context : contextOf(deepFreeze(fill(source, schema, leafOf(source, String)))),
    isDoubtful,
    /** Whether a text at a path or below it is not what the operator meant. */
    hasDoubtIn: (ancestor: string) => hasDoubt(source.references, ancestor),
    /** Whether the config, stand-ins included, has the shape that plugins may rely on. */
    isSound: shapes.length === 0,
    /** Findings of the schema, except those about stand-ins, and warnings of durations that look like seconds. */
    findings: [...wrongShapes, ...short],
    /** Returns the names of the unset variables at a path and below it. */
    unsetIn: (ancestor: string): readonly string[] => {
      const within = references.filter(([path]) => isWithin(path, ancestor));
      return [...new Set(within.flatMap(([, { unset }]) => unset))];
    },
  };
}

/**
 * Runs the plugins' own checks. Drops findings about stand-ins.
 * @param uncertain config paths of endpoints about which nothing is to be said.
 */
export function checkBy(
  definitions: readonly Definition[],
  { context, isDoubtful, isSound }: View,
  uncertain: ReadonlySet<string>,
  redact: Redact,
): Finding[] {
  const findingsOf = (definition: Definition): readonly Finding[] => {
    try {
      const findings: unknown = definition.check?.(context) ?? [];
      if (!Array.isArray(findings) || !findings.every(isFinding)) throw new Error('it returned no list of findings');
      return findings;
    } catch (error) {
      // A check may rely on the shape that the schema requires: with a wrong shape its failure is no fault of the plugin.
      if (!isSound) return [];
      return [errorAt('settings.plugins', `plugin "${definition.name}" failed to check the config: ${redact(error)}`)];
    }
  };
  return definitions.flatMap(findingsOf).filter(({ path }) => !isDoubtful(path) && !uncertain.has(ownerOf(path)));
}

/**
 * Asks the plugins what the config alone decides.
 * @returns the plugins with their budgets, and a finding for each of their functions that fails.
 */
export function askPlugins(
  drafts: readonly PluginDraft[],
  { config, isSound }: View,
  endpoints: readonly Endpoint[],
  redact: Redact,
) {
  const findings: Finding[] = [];
  const choices = drafts.map((draft) => {
    const { definition, budget: given, path = 'settings.plugins' } = draft;
    const attempt = <T>(member: keyof Definition, ask: () => T): T | undefined => {
      try {
        return ask();
      } catch (error) {
        const message = `plugin "${definition.name}": its "${member}" fails: ${redact(error)}`;
        // As with a check, a wrong shape excuses the failure.
        if (isSound) findings.push(errorAt(path, message));
        return undefined;
      }
    };
    attempt('isAnnounced', () => definition.isAnnounced?.(endpoints));
    attempt('behindProxy', () => definition.behindProxy?.(config));
    const budget = attempt('budget', () => budgetIn(config, endpoints, given)) ?? 'none';
    return { ...draft, budget };
  });
  return { choices, findings };
}

function isFinding(value: unknown): value is Finding {
  if (!isRecord(value) || (value.level !== 'error' && value.level !== 'warning')) return false;
  return typeof value.path === 'string' && typeof value.message === 'string';
}

/**
 * Derives the ID of each endpoint: `keccak256(utf8(text))`.
 * @returns the endpoints that have an ID of their own; a finding for each other one; and the config paths of those that have
 * no ID because of an unset variable in them.
 */
export function identify(definitions: readonly Definition[], { context, named, unsetIn, hasDoubtIn }: View) {
  const explained: { readonly endpoint: Endpoint; readonly text: string }[] = [];
  const findings: Finding[] = [];
  const uncertain = new Set<string>();
  const drafts = new Map<string, EndpointDraft>();
  const unsetAnywhere = unsetIn('');
  for (const [index, draft] of context.endpoints.entries()) {
    const { path, ...rest } = draft;
    const text = identityText(definitions, named.endpoints[index] ?? draft, named);
    const isText = typeof text === 'string';
    // A failure is excused by a wrong reference in the same API. Otherwise the endpoint or a plugin is at fault.
    const near = path.slice(0, path.indexOf('.'));
    const unset = isText ? unsetAnywhere.filter((name) => text.includes(standInFor(name))) : unsetIn(near);
    const other = isText ? drafts.get(text) : undefined;
    if (unset.length > 0) {
      findings.push(unidentified(path, unset));
      if (unsetIn(path).length > 0) uncertain.add(path);
    } else if (!isText) {
      if (!hasDoubtIn(near)) findings.push(text);
    } else if (other !== undefined) findings.push(double(draft, other));
    else {
      drafts.set(text, draft);
      explained.push({ endpoint: Object.freeze({ ...rest, id: toHex(keccak256(Buffer.from(text, 'utf8'))) }), text });
    }
  }
  return { explained, findings, uncertain };
}

function unidentified(path: string, names: readonly string[]): Finding {
  const variables = `${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}`;
  return warningAt(path, `no endpoint ID: it depends on the ${variables}`);
}

function double({ path, api, name }: EndpointDraft, other: EndpointDraft): Finding {
  return errorAt(
    path,
    `"${api}/${name}" and "${other.api}/${other.name}" (${other.path}) have the same endpoint ID: they are the same request. To have both, give one a parameter that the upstream ignores, such as {name: via, fixed: stream}`,
  );
}

/**
 * Returns the text whose hash is an endpoint's ID: canonical JSON (RFC 8785) of the members that plugins contribute. A member
 * that no plugin contributes is empty. If the text cannot be made, returns a finding that says why.
 */
function identityText(
  definitions: readonly Definition[],
  endpoint: EndpointDraft,
  context: CheckContext,
): string | Finding {
  const memberOf = (part: (typeof identityParts)[number]): [string, Json] => {
    const owner = definitions.find(({ identity }) => identity?.[part] !== undefined);
    return [part, owner?.identity?.[part]?.(endpoint, context) ?? (part === 'parameters' ? [] : null)];
  };
  try {
    return jcs(Object.fromEntries(identityParts.map(memberOf)));
  } catch (error) {
    const why = error instanceof CanonicalJsonError ? error.message : 'a plugin failed to describe the endpoint';
    return errorAt(endpoint.path, `the endpoint ID cannot be derived: ${why}`);
  }
}
