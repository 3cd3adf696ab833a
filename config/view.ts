import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import { deepFreeze } from '../lib/objects/deep-freeze.ts';
import type { CheckContext, Definition, EndpointDraft, Finding } from '../plugins-sdk/define.ts';
import { explain } from '../plugins-sdk/schema/explain.ts';
import { draftEndpoints, ownerOf } from './endpoints.ts';
import { warningAt } from './findings.ts';
import { identityFailure, identityText } from './identity.ts';
import { type Interpolated, standInFor } from './interpolate.ts';
import { fill } from './variables.ts';

/** An endpoint and the text that its ID is the hash of; without one the ID depends on unset variables. */
export interface Identified {
  readonly draft: EndpointDraft;
  readonly text: string | undefined;
}

/** The config with its variables replaced, and with samples for those that are unset. */
export class View {
  readonly config: Readonly<Record<string, unknown>>;
  /** Findings of the schema, but for those about stand-ins. */
  readonly wrongShapes: readonly Finding[];
  /** Whether everything has the shape that checks of plugins may rely on. */
  readonly isSound: boolean;
  readonly context: CheckContext;
  /** The same with the names of unset variables in place of samples: what shows one depends on it. */
  readonly #named: CheckContext;
  readonly #references: Interpolated['references'];

  /** @param folder that of the config file. */
  constructor(source: Interpolated, schema: TSchema, folder: string) {
    this.config = deepFreeze(fill(source, schema));
    this.#references = source.references;
    const wrong = explain(schema, this.config, '');
    const shapes = [...wrong, ...source.bareHex.findings(wrong)];
    this.isSound = shapes.length === 0;
    this.wrongShapes = shapes.filter(({ path }) => !this.isDoubtful(path));
    const contextOf = (config: View['config']): CheckContext =>
      Object.freeze({
        config,
        endpoints: Object.freeze(draftEndpoints(config, this.wrongShapes)),
        interpolated: (path: string) => source.references.has(path),
        path: (relative: string) => resolve(folder, relative),
      });
    this.context = contextOf(this.config);
    const isCertain = [...source.references.values()].every(({ doubtful }) => !doubtful);
    this.#named = isCertain ? this.context : contextOf(deepFreeze(fill(source, schema, (text) => text)));
  }

  /** Whether the text at a path is not what the operator meant. */
  readonly isDoubtful = (path: string): boolean => this.#references.get(path)?.doubtful === true;

  /** The findings without those about stand-ins, and about endpoints whose ID depends on one. */
  certain(findings: readonly Finding[], identified: readonly Identified[]): Finding[] {
    const unknown = identified.filter(({ text }) => text === undefined).map(({ draft }) => draft.path);
    const uncertain = new Set(unknown.filter((path) => this.#doubtsIn([path]).length > 0));
    return findings.filter(({ path }) => !this.isDoubtful(path) && !uncertain.has(ownerOf(path)));
  }

  /** Identifies the endpoints; says why where that is impossible, or depends on variables. */
  identify(definitions: readonly Definition[]): readonly (Identified & { readonly finding?: Finding })[] {
    return this.context.endpoints.map((draft, index) => {
      const { text, error } = identityOf(definitions, this.#named.endpoints[index] ?? draft, this.#named);
      if (text !== undefined && this.#shownIn(text).length === 0) return { draft, text };
      const api = draft.path.slice(0, draft.path.indexOf('.'));
      const doubts = this.#doubtsIn([draft.path, api]);
      // What fails without any stand-in near it is a fault of the endpoint, or of a plugin.
      if (text === undefined && doubts.length === 0) return { draft, text, finding: identityFailure(draft, error) };
      const names = text === undefined ? this.#unsetAt(doubts) : this.#shownIn(text);
      return { draft, text: undefined, ...(names.length > 0 && { finding: unidentified(draft.path, names) }) };
    });
  }

  /** The unset variables whose stand-ins a text shows. */
  #shownIn(text: string): readonly string[] {
    const all = this.#unsetAt([...this.#references.keys()]);
    return all.filter((name) => new RegExp(`${standInFor(name)}(?![a-z0-9])`).test(text));
  }

  #unsetAt(paths: readonly string[]): readonly string[] {
    return [...new Set(paths.flatMap((path) => this.#references.get(path)?.unset ?? []))];
  }

  /** The doubtful paths in endpoints, or in APIs outside their endpoints. */
  #doubtsIn(owners: readonly string[]): readonly string[] {
    return [...this.#references.keys()].filter((path) => this.isDoubtful(path) && owners.includes(ownerOf(path)));
  }
}

function identityOf(definitions: readonly Definition[], draft: EndpointDraft, context: CheckContext) {
  try {
    return { text: identityText(definitions, draft, context) };
  } catch (error) {
    return { error };
  }
}

function unidentified(path: string, names: readonly string[]): Finding {
  return warningAt(
    path,
    `no endpoint ID: it depends on the ${names.length === 1 ? 'variable' : 'variables'} ${names.join(', ')}`,
  );
}
