/** Characters of a pattern, and steps of what it is compiled to, with bounded repetitions written out. */
export const LONGEST_PATTERN = 1000;
const MOST_STEPS = 2000;

/** What is left of the work that one check may take. */
export interface Work {
  left: number;
}

/** Of a code point. */
type Test = (code: number) => boolean;

/** A step takes a character, asks for an end of the text, goes on at several others, or is the end of the pattern. */
type Step = { readonly test: Test } | { readonly at: '^' | '$' } | { readonly next: number[] } | 'match';

type Node =
  | { readonly test: Test }
  | { readonly at: '^' | '$' }
  | { readonly all: readonly Node[] }
  | { readonly any: readonly Node[] }
  | { readonly repeated: Node; readonly min: number; readonly max: number };

const GROUP = /\((?:\?:|\?<[^=!>]+>)?/y;
const QUANTIFIER = /(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y;
const CLASS = /\[(?:\\.|[^\]\\])*\]/suy;
const ESCAPE = /\\(?:u\{[^}]*\}|u[dD][89abAB]..\\u[dD][c-fC-F]..|u.{4}|x..|c.|[pP]\{[^}]*\}|.)/suy;
const REFUSED = /^\\(?:[bBk]|[1-9])/;
const CHARACTER = /[^()|]/suy;

/**
 * A regular expression of JavaScript (flag `u`) that takes time in proportion to text and pattern, whatever both are. All ways of
 * matching are followed at once (K. Thompson, "Regular Expression Search Algorithm", 1968). What needs to go back is refused:
 * back references, look-around and word boundaries.
 *
 * Ports of RE2 are no substitute. JSON Schema wants the dialect of JavaScript, which clients that read the OpenAPI document use.
 * In RE2 `\s` and `.` mean other characters, and it lacks `\u{…}` and `\p{Script=…}`. They have no bound of work either.
 */
export class LinearPattern {
  readonly #steps: Step[] = [];
  /** By step, the last position at which it was reached; positions are counted over all texts. */
  readonly #marks: Float64Array;
  #position = 0;

  /** @throws SyntaxError for what is no regular expression, or none of these. */
  constructor(source: string) {
    new RegExp(source, 'u');
    this.#emit(new Parser(source).parse());
    this.#push('match');
    this.#marks = new Float64Array(this.#steps.length);
  }

  /** Whether the text matches somewhere; not when that takes more work than is left. */
  test(text: string, work: Work): boolean {
    let current: number[] = [];
    for (let at = 0; work.left > 0; ) {
      this.#position += 1;
      const ends = { '^': at === 0, $: at === text.length };
      const code = text.codePointAt(at);
      const taking = this.#taking(current, ends, work);
      if (taking === undefined) return true;
      if (code === undefined) return false;
      at += code > 0xffff ? 2 : 1;
      current = taking.filter(({ test }) => test(code)).map(({ after }) => after);
    }
    return false;
  }

  /** The steps from here that take the next character, after some or from the start; none when the pattern ends here. */
  #taking(after: number[], ends: Readonly<Record<'^' | '$', boolean>>, work: Work): Taking[] | undefined {
    const taking: Taking[] = [];
    const open = after;
    open.push(0);
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (this.#marks[index] === this.#position) continue;
      this.#marks[index] = this.#position;
      work.left -= 1;
      const step = this.#steps[index];
      if (step === 'match') return undefined;
      if (step === undefined) continue;
      if ('test' in step) taking.push({ test: step.test, after: index + 1 });
      else if ('next' in step) open.push(...step.next);
      else if (ends[step.at]) open.push(index + 1);
    }
    return taking;
  }

  #push<S extends Step>(step: S): S {
    if (this.#steps.length >= MOST_STEPS)
      throw new SyntaxError(`has more than ${MOST_STEPS} steps, repetitions written out`);
    this.#steps.push(step);
    return step;
  }

  #emit(node: Node): void {
    if ('all' in node) for (const part of node.all) this.#emit(part);
    else if ('any' in node) this.#emitAny(node.any);
    else if ('repeated' in node) this.#emitRepeated(node);
    else this.#push(node);
  }

  #emitAny(branches: readonly Node[]): void {
    const fork = this.#push({ next: [] as number[] });
    const ends = branches.map((branch) => {
      fork.next.push(this.#steps.length);
      this.#emit(branch);
      return this.#push({ next: [] as number[] });
    });
    for (const { next } of ends) next.push(this.#steps.length);
  }

  #emitRepeated({ repeated, min, max }: Extract<Node, { repeated: Node }>): void {
    const start = this.#steps.length;
    for (let i = 0; i < min; i++) {
      this.#emit(repeated);
      // Nothing is as good once as a million times.
      if (this.#steps.length === start) return;
    }
    const exits: { next: number[] }[] = [];
    const loops = max === Infinity;
    for (let i = min; i < (loops ? min + 1 : max); i++) {
      const begin = this.#steps.length;
      exits.push(this.#push({ next: [begin + 1] }));
      this.#emit(repeated);
      if (loops) this.#push({ next: [begin] });
    }
    for (const { next } of exits) next.push(this.#steps.length);
  }
}

interface Taking {
  readonly test: Test;
  /** The step after it. */
  readonly after: number;
}

/** Reads a pattern that is known to be a regular expression. */
class Parser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Node {
    const branches: Node[][] = [[]];
    while (this.#at < this.#source.length && this.#source[this.#at] !== ')') {
      if (this.#source[this.#at] === '|') {
        this.#at += 1;
        branches.push([]);
      } else branches.at(-1)?.push(this.#quantified(this.#atom()));
    }
    const nodes = branches.map((all): Node => ({ all }));
    return nodes.length === 1 ? (nodes[0] ?? { all: [] }) : { any: nodes };
  }

  #atom(): Node {
    if (this.#source[this.#at] === '(') {
      this.#take(GROUP);
      if (this.#source[this.#at] === '?')
        throw new SyntaxError('has a look-around or a modifier, which are not supported');
      const inner = this.parse();
      this.#at += 1;
      return inner;
    }
    const text = (this.#take(CLASS) ?? this.#take(ESCAPE) ?? this.#take(CHARACTER))?.[0] ?? '';
    if (text === '^' || text === '$') return { at: text };
    if (REFUSED.test(text)) throw new SyntaxError(`has ${text}, which is not supported`);
    return { test: oneOf(text) };
  }

  #quantified(repeated: Node): Node {
    const found = this.#take(QUANTIFIER);
    if (found === undefined) return repeated;
    const [text, least = text.startsWith('+') ? '1' : '0', range, most] = found;
    const open = text.startsWith('?') ? 1 : Infinity;
    const max = found[1] === undefined ? open : Number(range === undefined ? least : most || Infinity);
    return { repeated, min: Number(least), max };
  }

  #take(token: RegExp): RegExpExecArray | undefined {
    token.lastIndex = this.#at;
    const found = token.exec(this.#source);
    if (found !== null) this.#at = token.lastIndex;
    return found ?? undefined;
  }
}

const ASCII = 128;

/** Whether a character is the one, or of the class, that a part of a pattern stands for. */
function oneOf(part: string): Test {
  const expression = new RegExp(`^${part}$`, 'u');
  const known = Uint8Array.from({ length: ASCII }, (_, code) => Number(expression.test(String.fromCharCode(code))));
  return (code) => (code < ASCII ? known[code] === 1 : expression.test(String.fromCodePoint(code)));
}
