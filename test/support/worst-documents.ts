const MEBIBYTE = 1024 * 1024;
/** Levels of arrays and objects that an answer may have. */
const LEVELS = 256;

/** Spreads numbers (a step of Knuth's multiplicative hash), the same in each run. */
const spread = (i: number) => Math.imul(i + 1, 2_654_435_761) >>> 0;
const shuffled = (i: number) => ((i * 7919) % 1_000_003).toString(36);

/** Kinds of keys: the i-th one as JSON text, without its quotes. */
export const keyKinds = {
  integers: String,
  'integers with gaps': (i: number) => String(i < 60_000 ? i : 60_000 + (i - 60_000) * 1600),
  'integers downwards': (i: number) => String(200_000 - i),
  'scattered integers': (i: number) => String(spread(i)),
  'integers far apart': (i: number) => String(i * 40_009),
  'integers in pairs': (i: number) => String((i >> 1) * 1600 + (i % 2)),
  letters: (i: number) => i.toString(36),
  'shuffled letters': shuffled,
  'random letters': (i: number) => `${spread(i).toString(36)}${spread(~i).toString(36)}`.slice(0, 8),
  'a long common beginning': (i: number) => 'x'.repeat(100) + shuffled(i),
  'ever longer beginnings': (i: number) => 'x'.repeat(i % 1400) + shuffled(i),
  'line feeds': (i: number) => `\\n${shuffled(i)}`,
  slashes: (i: number) => `\\/${shuffled(i)}`,
  'escaped letters': (i: number) => `\\u0061${shuffled(i)}`,
  'lone surrogates': (i: number) => `\\ud8${(i % 256).toString(16).padStart(2, '0')}${shuffled(i)}`,
  'beyond ASCII': (i: number) =>
    String.fromCharCode(0x4e00 + (i % 20_000)) + (i / 20_000 < 1 ? '' : Math.floor(i / 20_000)),
  'beyond 16 bits': (i: number) => String.fromCodePoint(0x1_0000 + ((i * 7919) % 100_003)),
  'around the surrogates': (i: number) => (i % 2 === 0 ? '\uffee' : '😀') + shuffled(i),
  'the same three': (i: number) => `k${i % 3}`,
  prototypes: (i: number) => (i % 2 === 0 ? '__proto__' : shuffled(i)),
} as const;

/** Kinds of values: the i-th one as JSON text. */
export const valueKinds = {
  digits: () => '1',
  'long numbers': (i: number) => `1.${spread(i)}${spread(~i)}`,
  exponents: (i: number) => `${i}e${i % 30}`,
  /** Too large for a double; JSON can carry them only where a later member takes their place. */
  'large numbers': (i: number) => (i < 40_000 ? '1e400' : '1'),
  texts: (i: number) => `"${shuffled(i)}"`,
  'empty texts': () => '""',
  escapes: () => '"\\u0041\\n"',
  'lone surrogates': () => '"\\ud800"',
  'texts beyond ASCII': () => '"😀é"',
  'empty lists': () => '[]',
  'empty objects': () => '{}',
  'rows of a table': (i: number) => JSON.stringify({ symbol: `S${i}`, price: i * 1.01, ask: { size: 2 }, bid: [1, 2] }),
} as const;

/** What a document is made of: lists or objects, in lists or objects, in each other. */
export interface Recipe {
  /** Without keys there are lists only. */
  readonly keys: keyof typeof keyKinds | 'none';
  readonly values: keyof typeof valueKinds;
  /** Members of each innermost list or object; 0 for a single one with all. */
  readonly members: number;
  /** Lists or objects with one member each, around each innermost one. */
  readonly chain: number;
  /** The same around all. */
  readonly levels: number;
  /** Whether each object begins with the same keys as the others. */
  readonly alike: boolean;
  /** Spaces behind each value. */
  readonly spaces: number;
}

const PLAIN: Recipe = { keys: 'none', values: 'digits', members: 0, chain: 0, levels: 0, alike: false, spaces: 0 };

/** A document of as many members as its size allows: valid JSON that is no deeper than an answer may be. */
export function documentOf(parts: Partial<Recipe>, size = MEBIBYTE): string {
  const { keys, values, members, chain, levels, alike, spaces } = { ...PLAIN, ...parts };
  const space = ' '.repeat(spaces);
  let count = 0;
  const key = (i: number) => (keys === 'none' ? '' : `"${keyKinds[keys](i)}"${space}:`);
  const member = (i: number) => `${key(alike ? i : count)}${valueKinds[values](count++)}${space}`;
  const [open, close] = keys === 'none' ? ['[', ']'] : ['{', '}'];
  const around = Math.min(levels, LEVELS - 10);
  const before = Array.from({ length: around }, () => `${open}${keys === 'none' ? '' : '"a":'}`).join('');
  const after = close.repeat(around);
  const links = Math.min(chain, LEVELS - around - 5);
  const unit = () => {
    const begin = Array.from({ length: links }, () => `${open}${key(count++)}`).join('');
    const inner = Array.from({ length: members }, (_, i) => member(i)).join(',');
    return `${begin}${open}${inner}${close}${space}${close.repeat(links)}`;
  };
  const isSingle = members === 0;
  const [first, last] = isSingle ? [open, close] : ['[', ']'];
  const texts: string[] = [];
  let rest = size - before.length - after.length - 2;
  for (;;) {
    const text = isSingle ? member(count) : unit();
    rest -= Buffer.byteLength(text) + 1;
    if (rest < 0) return `${before}${first}${texts.join(',')}${last}${after}`;
    texts.push(text);
  }
}

/** The documents that were worst for some way of reading them, found by `test/attacks/worst-json.attack.ts` and by hand. */
export const worstRecipes: Readonly<Record<string, Partial<Recipe>>> = {
  'integer keys with gaps': { keys: 'integers with gaps' },
  'scattered integer keys': { keys: 'scattered integers' },
  'integer keys downwards': { keys: 'integers downwards' },
  'lists of objects with integer keys': { keys: 'integers in pairs', members: 5000, alike: true },
  'short keys': { keys: 'shuffled letters' },
  'short keys 246 deep': { keys: 'letters', levels: 246 },
  'keys beyond 16 bits': { keys: 'beyond 16 bits' },
  'keys with line feeds': { keys: 'line feeds' },
  'keys with lone surrogates': { keys: 'lone surrogates' },
  'keys with a long common beginning': { keys: 'a long common beginning' },
  'one key again and again': { keys: 'the same three' },
  'numbers too large, of which none counts': { keys: 'the same three', values: 'large numbers' },
  'rows of a table': { values: 'rows of a table' },
  'small objects, all of new shapes': { keys: 'shuffled letters', members: 20 },
  'small objects, keys beyond 16 bits': { keys: 'beyond 16 bits', members: 20 },
  'chains of objects': { keys: 'letters', members: 1, chain: 240 },
  'lists in lists': { members: 1, chain: 20 },
  'lists 250 deep': { members: 1, chain: 249 },
  'empty lists': { values: 'empty lists' },
  'empty objects': { values: 'empty objects' },
  digits: {},
  'numbers with exponents': { values: 'exponents' },
  'texts with escapes': { values: 'escapes' },
  'white space': { keys: 'letters', members: 2, alike: true, spaces: 2 },
};
