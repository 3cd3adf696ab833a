/** Scripts for processes that speak for a plugin: see {@link speaker}. */

/** A long list, made with signs of life in between: who gives none is replaced. */
const TEXTS = `const texts = async (count, text) => {
  let all = '';
  for (let i = 0; i < count; i++) {
    all += (i === 0 ? '' : ',') + text(i);
    if (i % 4096 === 0) await new Promise(setImmediate);
  }
  return all;
};`;

/** What went wrong once, and what costs most to read. */
export const WORST: Readonly<Record<string, string>> = {
  'reports that nobody asked for': `for (let i = 0; i < 3000; i++) say({ k: 'parsed', more: 'x'.repeat(900_000) });`,
  'a million watches': `const one = frame(JSON.stringify({ k: 'watch', i: id })); for (let i = 0; i < 1000; i++) write(Buffer.concat(Array(1000).fill(one)));`,
  'a million pongs': `const one = frame('{"k":"pong"}'); for (let i = 0; i < 1000; i++) write(Buffer.concat(Array(1000).fill(one)));`,
  'a million results': `const one = frame(JSON.stringify({ k: 'done', i: id })); for (let i = 0; i < 1000; i++) write(Buffer.concat(Array(1000).fill(one)));`,
  'results of small objects': result(`'[' + (await texts(330_000, (i) => '{"' + i.toString(36) + '":1}')) + ']'`),
  'results of empty lists': result(`'[' + '[],'.repeat(1_300_000) + '1]'`),
  'results of keys that differ': result(`'{' + (await texts(380_000, (i) => '"' + i.toString(36) + 'z":1')) + '}'`),
  'results of a quarter of a mebibyte': result(
    `'[' + (await texts(20_000, (i) => '{"' + i.toString(36) + '":1}')) + ']'`,
  ),
  'results in deep lists': result(`'['.repeat(2_000_000) + ']'.repeat(2_000_000)`),
  'odd results': result(`'["object",[' + (await texts(49_000, (i) => '["k' + i + '",["is",1]]')) + ']]'`, 'odd'),
  'a result of many members': `say({ k: 'done', i: id, r: Array.from({ length: 300_000 }, () => ['a', '1']) });`,
  'a result of large members': `say({ k: 'done', i: id, r: Array.from({ length: 16 }, () => ['a', '[' + '{},'.repeat(80_000) + '0]']) });`,
  'a result of large data behind a space': `say({ k: 'done', i: id, r: [['data', ' [' + '{},'.repeat(1_000_000) + '0]']] });`,
  'a result of what nobody looks at': `say({ k: 'done', i: id, r: Array.from({ length: 250 }, (_, i) => ['a' + i, '[' + '{},'.repeat(5000) + '0]']) });`,
  'frames byte by byte': `const all = frame(JSON.stringify({ k: 'done', i: id, r: [['data', JSON.stringify('x'.repeat(1 << 15))]] })); for (let i = 0; i < all.length; i++) write(all.subarray(i, i + 1));`,
  'output byte by byte': `const end = Date.now() + 3000; const some = Buffer.from('\\n'); while (Date.now() < end) try { writeSync(1, some); writeSync(2, some); } catch { await new Promise(setImmediate); }`,
  'lines without end': `const some = Buffer.alloc(1 << 16, 10); for (let i = 0; i < 100; i++) try { writeSync(1, some); } catch { await new Promise(setImmediate); }`,
};

function result(json: string, member = 'r'): string {
  return `${TEXTS} write(frame('{"k":"done","i":' + id + ',"${member}":' + ${json} + '}'));`;
}

type Random = () => number;

function oneOf<T>(random: Random, list: readonly [T, ...T[]]): T {
  return list[Math.floor(random() * list.length)] ?? list[0];
}

const value = (random: Random, depth = 0): string => {
  const kinds = ['null', '1', '"text"', 'true', '{"length":9}', '-1', '1e999', '"__proto__"'] as const;
  if (depth > 3 || random() < 0.6) return oneOf(random, kinds);
  const some = Array.from({ length: Math.floor(random() * 4) }, () => value(random, depth + 1));
  return random() < 0.5
    ? `[${some}]`
    : `{${some.map((item, i) => `${oneOf(random, ['"k"', '"i"', '"__proto__"', `"${i}"`])}:${item}`)}}`;
};

const KINDS = [
  'done',
  'threw',
  'skipped',
  'watch',
  'pong',
  'parsed',
  'loaded',
  'made',
  'failed',
  'constructor',
  '',
] as const;

/** A report with members of any kind. */
function anyReport(random: Random): string {
  const members = ['r', 'odd', 'm', 'text', 'plugin', 'configSchema', 'error'] as const;
  const id = oneOf(random, ['id', 'id', 'id + 1', 'id - 1', '-1', '0', '1e15', '"1"', '0.5', 'null']);
  const more = Array.from(
    { length: Math.floor(random() * 3) },
    () => `${oneOf(random, members)}: ${JSON.stringify(value(random))}`,
  );
  return `say({ k: '${oneOf(random, KINDS)}', i: ${id}, ${more.join(', ')} });`;
}

/** What the process's own code may send. */
const GOOD: readonly [(random: Random) => string, ...((random: Random) => string)[]] = [
  () => `say({ k: 'watch', i: id }); say({ k: 'done', i: id });`,
  () => `say({ k: 'done', i: id, r: [['data', JSON.stringify('x'.repeat(1000))]] });`,
  (random) => `write(frame('{"k":"done","i":' + id + ',"r":' + ${JSON.stringify(value(random))} + '}'));`,
  (random) => `write(frame('{"k":"done","i":' + id + ',"odd":' + ${JSON.stringify(value(random))} + '}'));`,
  (random) =>
    `write(frame('{"k":"done","i":' + id + ',"m":' + ${JSON.stringify(JSON.stringify(value(random)))} + '}'));`,
  (random) => `say({ k: 'done', i: id, m: '{"a":"' + 'x'.repeat(${Math.floor(random() * 4089)}) + '"}' });`,
  (random) => `say({ k: 'threw', i: id, text: 'x'.repeat(${Math.floor(random() * 100_000)}) });`,
  (random) => `await new Promise((done) => setTimeout(done, ${Math.floor(random() * 50)})); say({ k: 'done', i: id });`,
  (random) =>
    `const all = frame(JSON.stringify({ k: 'done', i: id })); const at = ${Math.floor(random() * 40)}; write(all.subarray(0, at)); write(all.subarray(at));`,
  () => '',
];

const BAD: typeof GOOD = [
  anyReport,
  anyReport,
  (random) => `${anyReport(random)} ${anyReport(random)} ${anyReport(random)}`,
  (random) =>
    `const bytes = Buffer.alloc(${1 + Math.floor(random() * 60)}); for (let i = 0; i < bytes.length; i++) bytes[i] = i * ${Math.floor(random() * 256)}; write(bytes);`,
  (random) =>
    `const all = frame(JSON.stringify({ k: 'done', i: id })); all[${Math.floor(random() * 40)}] ^= ${1 + Math.floor(random() * 255)}; write(all);`,
  (random) =>
    `for (let i = 0; i < ${Math.floor(random() * 50)}; i++) say({ k: '${oneOf(random, KINDS)}', i: id, r: 'x'.repeat(${Math.floor(random() * 300_000)}) });`,
  (random) => oneOf(random, Object.values(WORST) as [string, ...string[]]).replace('3000', '300'),
  () => 'process.exit();',
  () => 'for (;;);',
];

/** Mostly what goes well, since each process that ends has to be replaced. */
export function framesScript(random: Random): string {
  return random() < 0.92 ? oneOf(random, GOOD)(random) : oneOf(random, BAD)(random);
}
