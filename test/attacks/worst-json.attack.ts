/** The worst JSON of 1 MiB is read right, within a bound of CPU time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { readJson } from '../../lib/json/json-text.ts';
import { isFiniteJson } from '../../lib/json/numbers.ts';
import { testPlugin } from '../../service/testing.ts';
import { seed } from '../support/seed.ts';
import { costOf } from '../support/turns.ts';
import { documentOf, keyKinds, type Recipe, valueKinds, worstRecipes } from '../support/worst-documents.ts';

/** Milliseconds of CPU for documents of `test/support/worst-documents.ts`, on a quiet machine. */
const KNOWN = { parsed: 150, canonical: 150 };
/** For documents that are found by chance, and for the copy of what a plugin returns. */
const ANY = 700;
const SMALL = 128 * 1024;
/** Documents that are tried beyond the known ones, and milliseconds that all of them may take. */
const RANDOM = 40;
const SEARCH_TIME_MS = 45_000;

type Parts = Partial<Recipe>;
type Kind = 'keys' | 'values';

const named = <K extends Kind>(part: K, kinds: object) => Object.keys(kinds).map((kind): Parts => ({ [part]: kind }));
const keys = named('keys', keyKinds);
/** Every kind of key and value, in the arrangements that were dear to somebody. */
const corpus: readonly Parts[] = [
  ...Object.values(worstRecipes),
  ...keys,
  ...keys.map((kind): Parts => ({ ...kind, members: 20 })),
  ...keys.map((kind): Parts => ({ ...kind, members: 1, chain: 240 })),
  ...named('values', valueKinds).flatMap((kind): Parts[] => [kind, { ...kind, keys: 'the same three' }]),
];

const recipe = fc.record({
  keys: fc.constantFrom('none' as const, ...(Object.keys(keyKinds) as (keyof typeof keyKinds)[])),
  values: fc.constantFrom(...(Object.keys(valueKinds) as (keyof typeof valueKinds)[])),
  members: fc.oneof(fc.constant(0), fc.nat(50), fc.nat(5000)),
  chain: fc.oneof(fc.constant(0), fc.nat(250)),
  levels: fc.oneof(fc.constant(0), fc.nat(246)),
  alike: fc.boolean(),
  spaces: fc.oneof(fc.constant(0), fc.nat(3)),
});

/** Nothing where a number that counts is beyond JSON. */
function dataOf(text: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    assert.match(String(error), /JsonLimitError/);
    return undefined;
  }
}

interface Costs {
  readonly parsed: number;
  readonly canonical: number;
}

/** The least of three attempts: other work on the machine only adds to it. */
function costsOf(parts: Parts): Costs {
  const text = documentOf(parts);
  const attempts = [1, 2, 3].map(() => {
    const [parsed, value] = timed(() => JSON.parse(text));
    return { parsed, canonical: isFiniteJson(value) ? timed(() => canonicalJson(value))[0] : 0 };
  });
  const least = (key: keyof Costs) => Math.min(...attempts.map((costs) => costs[key]));
  return { parsed: least('parsed'), canonical: least('canonical') };
}

function timed<T>(work: () => T): [ms: number, result: T] {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return [(user + system) / 1000, result];
}

async function requireCheap(parts: Parts): Promise<void> {
  for (const [what, ms] of Object.entries(costsOf(parts))) assert.ok(ms < ANY, `${what}: ${ms.toFixed(0)} ms of CPU`);
  const data = dataOf(documentOf(parts));
  if (data === undefined) return;
  const harness = await testPlugin({ name: 'echo', hooks: { onAfterApiCall: () => ({ data }) } }, { budget: 60_000 });
  const { cpu } = await costOf(() => harness.run('onAfterApiCall', { data: 1 }));
  assert.ok(cpu < ANY, `copy: ${cpu.toFixed(0)} ms of CPU`);
}

function requireRight(parts: Parts): void {
  const text = documentOf(parts, SMALL);
  const expected: unknown = JSON.parse(text);
  const value = dataOf(text);
  if (value === undefined) return;
  // A message with both would be too long to read.
  assert.ok(JSON.stringify(value) === JSON.stringify(expected), 'another value');
  const canonical = canonicalJson(value);
  assert.ok(canonical === canonicalize(expected)?.replace(/[\ud800-\udfff]/gu, escaped), 'another canonical text');
}

/** What has no UTF-8 is signed as an escape. */
const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16)}`;

describe('the worst JSON of 1 MiB', () => {
  const options = { seed, examples: corpus.map((parts): [Parts] => [parts]), numRuns: corpus.length + RANDOM };

  it('is read as JSON.parse and RFC 8785 read it', () => {
    fc.assert(fc.property(recipe, requireRight), options);
  });

  for (const [name, parts] of Object.entries(worstRecipes))
    it(`${name}: JSON.parse and canonicalJson take at most 150 ms each`, (t) => {
      const costs = costsOf(parts);
      t.diagnostic(`parsed in ${costs.parsed.toFixed(0)} ms, written in ${costs.canonical.toFixed(0)} ms`);
      assert.ok(costs.parsed <= KNOWN.parsed && costs.canonical <= KNOWN.canonical, JSON.stringify(costs));
    });

  it('takes no more of the processor than a bound, whatever it is', async () => {
    await fc.assert(fc.asyncProperty(recipe, requireCheap), { ...options, interruptAfterTimeLimit: SEARCH_TIME_MS });
  });
});
