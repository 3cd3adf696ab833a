import type { Json } from '../../../plugins-sdk/index.ts';
import { QUOTED_TEXT } from './brackets.ts';
import { PathError } from './budget.ts';

/**
 * What stands for a parameter while a path is parsed: a lone surrogate. It is a letter like others to the grammar of paths and
 * scripts, and no config holds one, since it has no canonical JSON.
 */
export const MARKS = /[\uDC00-\uDFFF]/gu;
const FIRST_MARK = 0xdc00;
const BRACES = /\{\{([^{}]+)\}\}|\{([^{}]+)\}/g;

/** What parameters are sent as, by their names. */
export type PathValues = Readonly<Record<string, Json>>;

interface Placeholder {
  /** As the path has it. */
  readonly source: string;
  /** Of a parameter; absent where it is a text. */
  readonly name?: string;
  valueIn(values: PathValues): Json;
}

/** Where parameters stand in a path. What they hold never becomes a part of its syntax. */
export class Placeholders {
  readonly #all: Placeholder[] = [];

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** Of the parameters. */
  get names(): readonly string[] {
    return this.#all.flatMap(({ name = [] }) => name);
  }

  /** The text with a mark for each `{name}` of a declared parameter, and for each `{{name}}`, which is the text `{name}`. */
  mark(text: string, declared: readonly string[]): string {
    return text.replace(BRACES, (source: string, escaped?: string, name?: string) => {
      if (!declared.includes(escaped ?? name ?? '')) return source;
      if (name === undefined) return this.#add({ source, valueIn: () => source.slice(1, -1) });
      return this.#add({ source, name, valueIn: (values) => valueNamed(name, values) });
    });
  }

  /** A script in which each quoted text that holds marks is one mark: as a value, it needs no quotes. */
  unquoted(script: string): string {
    return script.replace(QUOTED_TEXT, (quoted) => {
      if (quoted.search(MARKS) < 0) return quoted;
      const text = quoted.slice(1, -1).replace(/\\(.)/gs, '$1');
      return this.#add({ source: this.source(quoted), valueIn: (values) => this.fill(text, values) });
    });
  }

  /** The text as configured. */
  source(marked: string): string {
    return marked.replace(MARKS, (mark) => this.#at(mark)?.source ?? mark);
  }

  /** The text with values in the place of marks. */
  fill(marked: string, values: PathValues): string {
    return marked.replace(MARKS, (mark) => {
      const value = this.#at(mark)?.valueIn(values);
      return typeof value === 'string' ? value : JSON.stringify(value);
    });
  }

  /** The values by their marks, which scripts take for variables. */
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

/** @throws PathError where a plugin made the question, and left it out. */
function valueNamed(name: string, values: PathValues): Json {
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  if (value === undefined) throw new PathError(`the request has no value for {${name}}`);
  return value;
}

function markAt(index: number): string {
  return String.fromCharCode(FIRST_MARK + index);
}
