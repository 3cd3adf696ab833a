import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import { deepFreeze } from '../lib/objects/deep-freeze.ts';
import type { CheckContext, Definition, EndpointDraft, Finding } from '../plugins-sdk/define.ts';
import { explain, explainAll } from '../plugins-sdk/schema/explain.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { checkContext, draftEndpoints, ownerOf } from './endpoints.ts';
import { warningAt } from './findings.ts';
import { identityFailure, identityText } from './identity.ts';
import { type Interpolated, standInFor } from './interpolate.ts';
import { fill } from './variables.ts';

/** An endpoint and the text that its ID is the hash of; without one the ID depends on unset variables. */
export interface Identified {
  readonly draft: EndpointDraft;
  readonly text: string | undefined;
}

/** The text, or why there is none. */
interface Attempt {
  readonly text?: string;
  readonly error?: unknown;
}

/** The config with its variables replaced, and with samples for those that are unset. */
export class View {
  readonly config: Readonly<Record<string, unknown>>;
  /** Findings of the schema in the config with its samples. */
  readonly wrongShapes: readonly Finding[];
  readonly context: CheckContext;
  /** The same with other samples: what differs depends on unset variables. */
  readonly #other: CheckContext;
  /** Paths of texts that are not what the operator meant, by the endpoint or API that they lie in. */
  readonly #doubtfulIn = new Map<string, string[]>();
  readonly #references: Interpolated['references'];
  readonly #definitions: readonly Definition[];

  /** @param folder that of the config file. */
  constructor(source: Interpolated, schema: TSchema, definitions: readonly Definition[], folder: string) {
    this.config = deepFreeze(fill(source, schema));
    const wrong = (hasManyEndpoints(this.config) ? explainAll : explain)(schema, this.config, '');
    this.wrongShapes = [...wrong, ...source.bareHex.findings(wrong)];
    for (const [path, { doubtful }] of source.references)
      if (doubtful) this.#doubtfulIn.set(ownerOf(path), [...(this.#doubtfulIn.get(ownerOf(path)) ?? []), path]);
    this.#references = source.references;
    this.#definitions = definitions;
    const contextOf = (of: Readonly<Record<string, unknown>>) =>
      checkContext(of, draftEndpoints(of, this.wrongShapes), {
        interpolated: (path) => source.references.has(path),
        path: (relative) => resolve(folder, relative),
      });
    this.context = contextOf(this.config);
    this.#other = this.#doubtfulIn.size === 0 ? this.context : contextOf(deepFreeze(fill(source, schema, 1)));
  }

  /** Whether the text at a path is not what the operator meant. */
  readonly isDoubtful = (path: string): boolean => this.#references.get(path)?.doubtful === true;

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
   * @param nameVariables whether to say on which unset variables an ID depends.
   */
  identify(nameVariables: boolean): {
    readonly identified: readonly Identified[];
    readonly findings: readonly Finding[];
  } {
    const findings: Finding[] = [];
    const identified = this.context.endpoints.map((draft, index): Identified => {
      const { text, error } = this.#attempt(draft, this.context);
      const other = this.#other === this.context ? text : this.#attempt(this.#other.endpoints[index], this.#other).text;
      if (text !== undefined && text === other) return { draft, text };
      const concerning = this.#concerning(draft);
      // What fails without any sample in it is a fault of the endpoint, or of a plugin.
      if (text === undefined && concerning.length === 0) findings.push(identityFailure(draft, error));
      else if (nameVariables) findings.push(...unidentified(draft.path, this.#namesIn(text, concerning)));
      return { draft, text: undefined };
    });
    return { identified, findings: [...findings, ...this.#leftOut()] };
  }

  /** The unset variables whose stand-ins a text shows; where it shows none, those at the paths, or all. */
  #namesIn(text: string | undefined, concerning: readonly string[]): readonly string[] {
    const all = this.#unsetAt([...this.#references.keys()]);
    const shown = all.filter((name) => text !== undefined && new RegExp(`${standInFor(name)}(?![a-z0-9])`).test(text));
    const near = this.#unsetAt(concerning);
    return [shown, near, all].find(({ length }) => length > 0) ?? [];
  }

  #unsetAt(paths: readonly string[]): readonly string[] {
    return [...new Set(paths.flatMap((path) => this.#references.get(path)?.unset ?? []))];
  }

  /** The doubtful paths in an endpoint, and in its API outside the other endpoints. */
  #concerning({ path }: EndpointDraft): readonly string[] {
    const api = path.slice(0, path.indexOf('.'));
    return [path, api].flatMap((owner) => this.#doubtfulIn.get(owner) ?? []);
  }

  /** Endpoints and APIs that cannot be read at all because no sample fits. */
  #leftOut(): Finding[] {
    const drafted = new Set(this.context.endpoints.map(({ path }) => path));
    return this.wrongShapes
      .filter(({ path }) => this.isDoubtful(path) && path.startsWith('apis') && !drafted.has(ownerOf(path)))
      .flatMap(({ path }) => unidentified(ownerOf(path), this.#unsetAt([path])));
  }

  #attempt(draft: EndpointDraft | undefined, context: CheckContext): Attempt {
    try {
      return draft === undefined ? {} : { text: identityText(this.#definitions, draft, context) };
    } catch (error) {
      return { error };
    }
  }
}

/** Endpoints from which on a config is checked faster by code, which takes some 40 ms to compile. */
const MANY_ENDPOINTS = 300;

function hasManyEndpoints({ apis }: Readonly<Record<string, unknown>>): boolean {
  const lists = Array.isArray(apis) ? apis.map((api) => (isRecord(api) ? api.endpoints : undefined)) : [];
  return lists.filter(Array.isArray).flat().length >= MANY_ENDPOINTS;
}

/** Without a name something else is wrong, and told. */
function unidentified(path: string, names: readonly string[]): Finding[] {
  if (names.length === 0) return [];
  const variables = `the ${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}`;
  return [warningAt(path, `no endpoint ID: it depends on ${variables}`)];
}
