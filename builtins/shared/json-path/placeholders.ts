import type { Json } from '../../../plugins-sdk/index.ts';
import { QUOTED_TEXT } from './brackets.ts';
import { PathError } from './budget.ts';

/**
 * Matches marks, the lone surrogates that replace placeholders while a path is parsed. To the grammars of paths and scripts
 * they are letters. No config holds one, since it has no canonical JSON.
 */
export const MARKS = /[\uDC00-\uDFFF]/gu;
const FIRST_MARK = 0xdc00;
const BRACES = /\{\{([^{}]+)\}\}|\{([^{}]+)\}/g;

/**
 * The parameters' values as sent upstream, by name. A value with a number that a double rounds also has a text with all digits,
 * by its name in braces, which no name of a placeholder holds.
 */
export type PathValues = Readonly<Record<string, Json>>;

interface Placeholder {
  /** The placeholder as written in the path. */
  readonly source: string;
  /** The parameter's name; absent for an escaped text. */
  readonly name?: string;
  valueIn(values: PathValues): Json;
}

/** The placeholders of paths. A parameter's value never becomes part of a path's syntax. */
export class Placeholders {
  readonly #all: Placeholder[] = [];

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** The names of the parameters. */
  get names(): readonly string[] {
    return this.#all.flatMap(({ name = [] }) => name);
  }

  /** Puts a mark in the place of each `{name}` of a declared parameter, and of each `{{name}}`, which means the text `{name}`. */
  mark(text: string, declared: readonly string[]): string {
    return text.replace(BRACES, (source: string, escaped?: string, name?: string) => {
      if (!declared.includes(escaped ?? name ?? '')) return source;
      if (name === undefined) return this.#add({ source, valueIn: () => source.slice(1, -1) });
      return this.#add({ source, name, valueIn: (values) => valueNamed(name, values) });
    });
  }

  /** Replaces each quoted text with marks in a script by one mark: the mark is a variable, which needs no quotes. */
  unquoted(script: string): string {
    return script.replace(QUOTED_TEXT, (quoted) => {
      if (quoted.search(MARKS) < 0) return quoted;
      const text = quoted.slice(1, -1).replace(/\\(.)/gs, '$1');
      return this.#add({ source: this.source(quoted), valueIn: (values) => this.fill(text, values) });
    });
  }

  /** Returns the text as configured, without marks. */
  source(marked: string): string {
    return marked.replace(MARKS, (mark) => this.#at(mark)?.source ?? mark);
  }

  /** Replaces the marks in a text by values. */
  fill(marked: string, values: PathValues): string {
    return marked.replace(MARKS, (mark) => {
      const placeholder = this.#at(mark);
      const value = values[placeholder?.source ?? ''] ?? placeholder?.valueIn(values);
      return typeof value === 'string' ? value : JSON.stringify(value);
    });
  }

  /** Returns the values by their marks, which are variables to scripts. */
  variables(values: PathValues): Record<string, Json> {
    return Object.fromEntries(this.#all.map(({ valueIn }, index) => [markAt(index), valueIn(values)]));
  }

  #add(placeholder: Placeholder): string {
    return markAt(this.#all.push(placeholder) - 1);
  }

  #at(mark: string): Placeholder | undefined {
    return this.#all[mark.charCodeAt(0) - FIRST_MARK];
  }
}

/** Returns a parameter's value. @throws PathError when there is none, because a plugin made the question without it. */
function valueNamed(name: string, values: PathValues): Json {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  if (value === undefined) throw new PathError(`the request has no value for {${name}}`);
  return value;
}

function markAt(index: number): string {
  return String.fromCharCode(FIRST_MARK + index);
}
