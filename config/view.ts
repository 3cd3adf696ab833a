import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import { deepFreeze } from '../lib/objects/deep-freeze.ts';
import type { CheckContext, Definition, EndpointDraft, Finding } from '../plugins-sdk/define.ts';
import { explain, explainAll } from '../plugins-sdk/schema/explain.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { checkContext, draftEndpoints, ownerOf } from './endpoints.ts';
import { warningAt } from './findings.ts';
import { identityFailure, identityText } from './identity.ts';
import type { Interpolated } from './interpolate.ts';
import { doubtfulPaths, fill, vary } from './variables.ts';

/** An endpoint and the text that its ID is the hash of; without one the ID depends on unset variables. */
export interface Identified {
  readonly draft: EndpointDraft;
  readonly text: string | undefined;
}

/** The text, or why there is none. */
type Attempt = { readonly text: string } | { readonly text: undefined; readonly error: unknown };

/** The config with its variables replaced, and with samples for those that are unset. */
export class View {
  readonly config: Readonly<Record<string, unknown>>;
  /** Findings of the schema in the config with its samples. */
  readonly wrongShapes: readonly Finding[];
  readonly context: CheckContext;
  readonly #doubtful: ReadonlySet<string>;
  /** The same by the endpoint or API that they lie in. */
  readonly #doubtfulIn = new Map<string, string[]>();
  /** Doubtful paths at which there is no choice of samples. */
  readonly #rigid: ReadonlySet<string>;
  readonly #source: Interpolated;
  readonly #schema: TSchema;
  readonly #definitions: readonly Definition[];
  readonly #folder: string;

  /** @param folder that of the config file. */
  constructor(source: Interpolated, schema: TSchema, definitions: readonly Definition[], folder: string) {
    this.#folder = folder;
    const { config, rigid } = fill(source, schema);
    this.config = deepFreeze(config);
    const wrong = hasManyEndpoints(config) ? explainAll(schema, config) : explain(schema, config, '');
    this.wrongShapes = [...wrong, ...source.bareHex.findings(wrong)];
    this.#doubtful = new Set(doubtfulPaths(source.references));
    for (const path of this.#doubtful) {
      this.#doubtfulIn.set(ownerOf(path), [...(this.#doubtfulIn.get(ownerOf(path)) ?? []), path]);
    }
    this.#rigid = rigid;
    this.#source = source;
    this.#schema = schema;
    this.#definitions = definitions;
    this.context = this.#contextOf(config);
  }

  /** Whether the text at a path is not what the operator meant. */
  readonly isDoubtful = (path: string): boolean => this.#doubtful.has(path);

  /** The findings without those about samples and about what a sample decides. */
  certain(findings: readonly Finding[], identified: readonly Identified[]): Finding[] {
    const uncertain = new Set(
      identified
        .filter(({ draft, text }) => text === undefined && this.#doubtfulIn.has(draft.path))
        .map(({ draft }) => draft.path),
    );
    return findings.filter(({ path }) => !this.isDoubtful(path) && !uncertain.has(ownerOf(path)));
  }

  /**
   * Identifies the endpoints; says why where that is impossible.
   * @param nameVariables whether to say on which unset variables an ID depends, which takes a try for each variable.
   */
  identify(nameVariables: boolean): {
    readonly identified: readonly Identified[];
    readonly findings: readonly Finding[];
  } {
    const attempts = this.#attempts(this.context);
    const others = this.#doubtful.size === 0 ? attempts : this.#attempts(this.#contextWith(this.#doubtful));
    const entries = this.context.endpoints.map((draft, index) => {
      const attempt = attempts[index] ?? { text: undefined, error: undefined };
      const depends =
        attempt.text !== others[index]?.text || this.#concerning(draft).some((path) => this.#rigid.has(path));
      return { draft, attempt, index, text: depends ? undefined : attempt.text };
    });
    const failed = entries.filter(({ text }) => text === undefined);
    const namesOf = this.#dependencies(attempts, others);
    const findings = failed.flatMap(({ draft, attempt, index }) => {
      // What fails without any sample in it is a fault of the endpoint, or of a plugin.
      if (attempt.text === undefined && this.#concerning(draft).length === 0)
        return [identityFailure(draft, attempt.error)];
      return nameVariables ? [unidentified(draft.path, namesOf(draft, index))] : [];
    });
    return { identified: entries, findings: [...findings, ...this.#leftOut()] };
  }

  /** Finds the unset variables that an endpoint's ID depends on, by a try with another sample for each. */
  #dependencies(
    attempts: readonly Attempt[],
    others: readonly Attempt[],
  ): (draft: EndpointDraft, index: number) => readonly string[] {
    const { references } = this.#source;
    const places = new Map<string, string[]>();
    for (const [path, { unset }] of references)
      for (const name of unset) places.set(name, [...(places.get(name) ?? []), path]);
    const names = [...places.keys()];
    const contexts = new Map<string, CheckContext>();
    const contextWith = (changed: readonly string[]): CheckContext => {
      const key = changed.join();
      const context = contexts.get(key) ?? this.#contextWith(changed.flatMap((name) => places.get(name) ?? []));
      contexts.set(key, context);
      return context;
    };
    return (draft, index) => {
      const text = attempts[index]?.text;
      const concerning = this.#concerning(draft);
      // Where a sample makes a plugin fail, or there is none to vary, the variable counts as needed.
      const opaque = concerning.filter((path) => this.#rigid.has(path) || text === undefined);
      const needed = new Set(opaque.flatMap((path) => references.get(path)?.unset ?? []));
      const matters = (name: string) => needed.has(name) || this.#attempt(contextWith([name]), index).text !== text;
      const nearby = new Set([draft.path, apiOf(draft), 'elsewhere', '']);
      const near = names.filter((name) => places.get(name)?.some((path) => nearby.has(ownerOf(path))));
      const found = near.filter(matters);
      // A plugin may look at other endpoints, too: then there is more to the ID than what was found.
      const enough = this.#attempt(contextWith(found), index).text === others[index]?.text;
      return enough ? found : names.filter(matters);
    };
  }

  /** The doubtful paths in an endpoint, and in its API outside the other endpoints. */
  #concerning(draft: EndpointDraft): readonly string[] {
    return [...(this.#doubtfulIn.get(draft.path) ?? []), ...(this.#doubtfulIn.get(apiOf(draft)) ?? [])];
  }

  /** Endpoints and APIs that cannot be read at all because no sample fits. */
  #leftOut(): Finding[] {
    const drafted = new Set(this.context.endpoints.map(({ path }) => path));
    return this.wrongShapes
      .filter(({ path }) => this.isDoubtful(path) && path.startsWith('apis') && !drafted.has(ownerOf(path)))
      .map(({ path }) => unidentified(ownerOf(path), this.#source.references.get(path)?.unset ?? []));
  }

  /** The context with second samples at some paths. */
  #contextWith(paths: Iterable<string>): CheckContext {
    return this.#contextOf(deepFreeze(vary(this.#source, this.#schema, this.config, paths)));
  }

  #attempts(context: CheckContext): Attempt[] {
    return context.endpoints.map((_, index) => this.#attempt(context, index));
  }

  #attempt(context: CheckContext, index: number): Attempt {
    const draft = context.endpoints[index];
    if (draft === undefined) return { text: undefined, error: undefined };
    try {
      return { text: identityText(this.#definitions, draft, context) };
    } catch (error) {
      return { text: undefined, error };
    }
  }

  #contextOf(config: Readonly<Record<string, unknown>>): CheckContext {
    const { references } = this.#source;
    return checkContext(config, draftEndpoints(config, this.wrongShapes), {
      interpolated: (path) => references.has(path),
      path: (relative) => resolve(this.#folder, relative),
    });
  }
}

/** Endpoints from which on a config is checked faster by code, which takes some 40 ms to compile. */
const MANY_ENDPOINTS = 300;

function hasManyEndpoints({ apis }: Readonly<Record<string, unknown>>): boolean {
  const lists = Array.isArray(apis) ? apis.map((api) => (isRecord(api) ? api.endpoints : undefined)) : [];
  return lists.filter(Array.isArray).flat().length >= MANY_ENDPOINTS;
}

/** The path of an endpoint's API. */
function apiOf({ path }: EndpointDraft): string {
  return path.slice(0, path.indexOf('.'));
}

/** Without names where an ID changes only with several variables at once. */
function unidentified(path: string, names: readonly string[]): Finding {
  const variables =
    names.length === 0
      ? 'several variables that are not set'
      : `the ${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}`;
  return warningAt(path, `no endpoint ID: it depends on ${variables}`);
}
