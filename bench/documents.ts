const MEBIBYTE = 1024 * 1024;

/** Pseudo-random numbers (Numerical Recipes), the same in each run. */
let state = 1;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state;
}

const key = () => `${random().toString(36)}${random().toString(36)}`.slice(0, 8);

/** As many members as a mebibyte holds. */
function filled([open = '', close = '']: string, member: (i: number) => string): string {
  const members: string[] = [];
  for (let size = 2, i = 0; ; i++) {
    const text = member(i);
    size += text.length + 1;
    if (size > MEBIBYTE) return `${open}${members.join(',')}${close}`;
    members.push(text);
  }
}

const row = (i: number) => ({ symbol: `S${i}`, price: i * 1.01, volume: i, ask: { size: 2, price: 1 }, bid: [1, 2] });

/** Documents of one mebibyte, each the worst of its kind for somebody: the parser, the sorter, the garbage collector. */
export const documents: Readonly<Record<string, string>> = {
  'rows of a table': filled('[]', (i) => JSON.stringify(row(i))),
  'small objects': filled('[]', () => '{"b":1,"a":2}'),
  'random keys': filled('{}', () => `"${key()}":1`),
  'short keys': filled('{}', (i) => `"${((i * 7919) % 1_000_003).toString(36)}":1`),
  'keys with a long common beginning': filled('{}', () => `"${'x'.repeat(100)}${key()}":1`),
  'keys with escapes': filled('{}', () => `"\\n${key()}":1`),
  'one key again and again': filled('{}', (i) => `"k${i % 3}":1`),
  'empty arrays': filled('[]', () => '[]'),
  'arrays in arrays': filled('[]', () => '['.repeat(20) + ']'.repeat(20)),
  'arrays 250 deep': filled('[]', () => '['.repeat(250) + ']'.repeat(250)),
  'objects 200 deep': filled('[]', () => `${'{"b":0,"a":'.repeat(200)}1${'}'.repeat(200)}`),
  'all in an object 250 deep': `${'{"b":0,"a":'.repeat(250)}${filled('[]', () => '1').slice(0, -5001)}]${'}'.repeat(250)}`,
  digits: filled('[]', () => '1'),
  'numbers with 20 digits': filled('[]', () => `1.${random()}${random()}`),
  'numbers with exponents': filled('[]', (i) => `${i}e${i % 30}`),
  'empty texts': filled('[]', () => '""'),
  'texts with escapes': filled('[]', () => '"\\u0041\\n"'),
  'lone surrogates': filled('[]', () => '"\\ud800"'),
  'texts beyond ASCII': filled('[]', () => '"😀é"')
    .slice(0, 600_000)
    .replace(/,[^,]*$/, ']'),
  'white space': filled('[]', () => ' { "b" : 1 , "a" : 2 } '),
  'one long text': `"${'x'.repeat(MEBIBYTE - 2)}"`,
};
