/** The worst JSON of 1 MiB is read right, within a bound of CPU time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalText } from '../../lib/json/canonical-text.ts';
import { inTurns } from '../../lib/json/turns.ts';
import { LongResponse } from '../../plugins-sdk/results/long-response.ts';
import { testPlugin } from '../../plugins-sdk/testing/index.ts';
import { documentOf, keyKinds, type Recipe, valueKinds, worstRecipes } from '../../tools/bench/documents.ts';
import { seed } from '../support/seed.ts';
import { costOf } from '../support/turns.ts';

/**
 * Looks for answers of 1 MiB that are dear to read. The limits of `tools/bench/README.md` are for a quiet machine; these are so
 * generous that a busy one does not break them, and that nothing quadratic keeps them.
 */
const LIMITS = { value: 700, canonical: 1000, copy: 1000, turn: 1000 };
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

const read = (text: string) => inTurns(LongResponse.read(200, Buffer.from(text)));

/** Numbers that JSON cannot carry may be among those that count. */
function refused(error: unknown): undefined {
  assert.match(String(error), /JsonLimitError/);
}

/** The dearest of all, for whoever reads the output. */
const worst = new Map<string, { readonly ms: number; readonly parts: Parts }>();

function requireBelow(limit: number, what: string, ms: number, parts: Parts): void {
  if (ms > (worst.get(what)?.ms ?? 0)) worst.set(what, { ms, parts });
  assert.ok(ms < limit, `${what}: ${ms.toFixed(0)} ms of CPU`);
}

async function requireCheap(parts: Parts): Promise<void> {
  const text = documentOf(parts);
  const value = await costOf(async () => {
    const response = await read(text);
    return { response, data: response.value };
  }).catch(refused);
  if (value === undefined) return;
  const { response, data } = value.result;
  const canonical = await costOf(async () => canonicalText(response.value));
  const harness = await testPlugin({ name: 'echo', hooks: { onAfterApiCall: () => ({ data }) } }, { budget: 60_000 });
  const copy = await costOf(() => harness.onAfterApiCall({ data: 1 }));
  for (const [what, { cpu, longestTurn }] of Object.entries({ value, canonical, copy })) {
    requireBelow(LIMITS[what as keyof typeof LIMITS], what, cpu, parts);
    requireBelow(LIMITS.turn, `a turn of ${what}`, longestTurn, parts);
  }
}

async function requireRight(parts: Parts): Promise<void> {
  const text = documentOf(parts, SMALL);
  const expected: unknown = JSON.parse(text);
  const response = await read(text).catch(refused);
  if (response === undefined) return;
  const { value } = response;
  // A message with both would be too long to read.
  assert.ok(JSON.stringify(value) === JSON.stringify(expected), 'another value');
  const canonical = canonicalText(value);
  assert.ok(canonical.json === canonicalize(expected)?.replace(/[\ud800-\udfff]/gu, escaped), 'another canonical text');
}

/** What has no UTF-8 is signed as an escape. */
const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16)}`;

describe('the worst JSON of 1 MiB', () => {
  const options = { seed, examples: corpus.map((parts): [Parts] => [parts]), numRuns: corpus.length + RANDOM };

  it('is read as JSON.parse and RFC 8785 read it', async () => {
    await fc.assert(fc.asyncProperty(recipe, requireRight), options);
  });

  it('takes no more of the processor than a bound', async () => {
    await fc.assert(fc.asyncProperty(recipe, requireCheap), { ...options, interruptAfterTimeLimit: SEARCH_TIME_MS });
    for (const [what, { ms, parts }] of worst)
      process.stdout.write(`${what}: ${ms.toFixed(0)} ms, ${JSON.stringify(parts)}\n`);
  });
});
