import type { Finding } from '../plugins-sdk/define.ts';
import { hasType, type SchemaNode } from '../plugins-sdk/schema/node.ts';
import { errorAt } from './findings.ts';
import { isExact, NOT_EXACT } from './tree.ts';

/** Values written as `0x…` without quotes, by config path: numbers to YAML, and to their writers often texts, such as addresses. */
export class BareHex {
  readonly #texts = new Map<string, string>();
  readonly #asTexts = new Set<string>();

  add(path: string, text: string): void {
    this.#texts.set(path, text);
  }

  /** What stands in the file, where that schema takes a text and no number. */
  textFor(value: number, nodes: readonly SchemaNode[], path: string): string | undefined {
    const text = this.#texts.get(path);
    const isWanted = text !== undefined && nodes.some((node) => hasType(node, text));
    if (!isWanted || nodes.some((node) => hasType(node, value))) return undefined;
    this.#asTexts.add(path);
    return text;
  }

  /** Finds those that lost digits and were not taken as texts. @param known what is wrong anyway. */
  findings(known: readonly Finding[]): Finding[] {
    const wrong = new Set(known.map(({ path }) => path));
    return [...this.#texts]
      .filter(([path, text]) => !wrong.has(path) && !this.#asTexts.has(path) && !isExact(text, Number(text)))
      .map(([path]) => errorAt(path, NOT_EXACT));
  }
}
