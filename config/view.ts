import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import type { Json } from '../kernel/values.ts';
import { type Hex, keccak256, toHex } from '../lib/eth/hex.ts';
import { CanonicalJsonError, jcs } from '../lib/json/canonical-json.ts';
import { deepFreeze } from '../lib/objects.ts';
import {
  type CheckContext,
  type Definition,
  type EndpointDraft,
  errorAt,
  type Finding,
  identityParts,
  warningAt,
} from '../plugins-sdk/define.ts';
import { explain } from '../plugins-sdk/schema/explain.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import { draftEndpoints, ownerOf } from './endpoints.ts';
import type { Redact } from './findings.ts';
import { type Interpolated, standInFor } from './interpolate.ts';
import { fill } from './variables.ts';

/** An endpoint with the text whose hash is its ID, or with a finding that says why it has none. */
export interface Identified {
  readonly draft: EndpointDraft;
  readonly text?: string;
  readonly finding?: Finding;
}

/** The config with its variables replaced, and with samples for those that are unset. */
export class View {
  readonly config: Readonly<Record<string, unknown>>;
  /** Findings of the schema, except those about stand-ins. */
  readonly wrongShapes: readonly Finding[];
  readonly context: CheckContext;
  /** The same context, with named stand-ins in place of samples. An ID depends on a variable if its text shows the stand-in. */
  readonly #named: CheckContext;
  readonly #references: Interpolated['references'];
  readonly #isSound: boolean;

  /** @param folder the folder of the config file. */
  constructor(source: Interpolated, schema: TSchema, folder: string) {
    this.#references = source.references;
    this.config = deepFreeze(fill(source, schema));
    const shapes = explain(schema, this.config, '');
    this.#isSound = shapes.length === 0;
    this.wrongShapes = shapes.filter(({ path }) => !this.isDoubtful(path));
    const contextOf = (config: View['config']): CheckContext =>
      Object.freeze({
        config,
        endpoints: Object.freeze(draftEndpoints(config, this.wrongShapes)),
        interpolated: (path: string) => [...source.references.keys()].some((at) => isWithin(at, path)),
        path: (relative: string) => resolve(folder, relative),
      });
    this.context = contextOf(this.config);
    const isCertain = [...source.references.values()].every(({ doubtful }) => !doubtful);
    this.#named = isCertain ? this.context : contextOf(deepFreeze(fill(source, schema, (text) => text)));
  }

  /** Whether the text at a path is not what the operator meant. */
  readonly isDoubtful = (path: string): boolean => this.#references.get(path)?.doubtful === true;

  /** Runs the plugins' own checks. Drops findings about stand-ins, and about endpoints whose ID depends on one. */
  check(definitions: readonly Definition[], identified: readonly Identified[], redact: Redact): Finding[] {
    const unknown = identified.filter(({ text }) => text === undefined).map(({ draft }) => draft.path);
    const uncertain = new Set(unknown.filter((path) => this.#unsetIn(path).length > 0));
    return definitions
      .flatMap((definition) => this.#checkBy(definition, redact))
      .filter(({ path }) => !this.isDoubtful(path) && !uncertain.has(ownerOf(path)));
  }

  #checkBy(definition: Definition, redact: Redact): readonly Finding[] {
    try {
      const findings: unknown = definition.check?.(this.context) ?? [];
      if (!Array.isArray(findings) || !findings.every(isFinding)) throw new Error('it returned no list of findings');
      return findings;
    } catch (error) {
      // A check may rely on the shape that the schema requires: with a wrong shape its failure is no fault of the plugin.
      if (!this.#isSound) return [];
      return [errorAt('settings.plugins', `plugin "${definition.name}" failed to check the config: ${redact(error)}`)];
    }
  }

  /** Makes the text of each endpoint's ID, or a finding if that is impossible or depends on unset variables. */
  identify(definitions: readonly Definition[]): readonly Identified[] {
    return this.context.endpoints.map((draft, index) => {
      const text = identityText(definitions, this.#named.endpoints[index] ?? draft, this.#named);
      const isText = typeof text === 'string';
      // A failure is excused by an unset variable in the same API. Otherwise the endpoint or a plugin is at fault.
      const near = draft.path.slice(0, draft.path.indexOf('.'));
      const unset = isText ? shownIn(text, this.#unsetIn('')) : this.#unsetIn(near);
      if (unset.length > 0) return { draft, finding: unidentified(draft.path, unset) };
      return isText ? { draft, text } : { draft, finding: text };
    });
  }

  /** Returns the names of the unset variables at a path and below it. */
  #unsetIn(ancestor: string): readonly string[] {
    const within = [...this.#references].filter(([path]) => isWithin(path, ancestor));
    return [...new Set(within.flatMap(([, { unset }]) => unset))];
  }
}

/** Returns the names whose stand-ins are in a text. A longer one comes first, since a shorter one may be its beginning. */
function shownIn(text: string, names: readonly string[]): readonly string[] {
  const longerFirst = names.map(standInFor).sort((a, b) => b.length - a.length);
  // An empty pattern would match at every character.
  const found = new Set(names.length > 0 ? text.match(new RegExp(longerFirst.join('|'), 'g')) : []);
  return names.filter((name) => found.has(standInFor(name)));
}

function unidentified(path: string, names: readonly string[]): Finding {
  const variables = `${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}`;
  return warningAt(path, `no endpoint ID: it depends on the ${variables}`);
}

function isFinding(value: unknown): value is Finding {
  if (!isRecord(value) || (value.level !== 'error' && value.level !== 'warning')) return false;
  return typeof value.path === 'string' && typeof value.message === 'string';
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

/** Returns the endpoint ID of an identity text: `keccak256(utf8(text))`. */
export function endpointId(text: string): Hex {
  return toHex(keccak256(Buffer.from(text, 'utf8')));
}
