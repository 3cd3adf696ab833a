import assert from 'node:assert/strict';
import { it } from 'node:test';
import { planOf } from './plan.ts';
import { FuzzedService } from './service.ts';
import { Draw } from './situation.ts';

/** Requests of one service; those of a wild one are under way at once. */
const TOGETHER = 50;
/** The same in every run: `SEED` searches elsewhere, and `SERVICE` repeats the requests of one service. */
const seed = Number(process.env.SEED ?? 1);
const ONLY = process.env.SERVICE;

/** Milliseconds that plugins of a wild service have, few of them. */
const BUDGETS = [3, 5, 8];

/** @returns which rules were broken, and by which requests of the first service where any was. */
async function faultsOf(requests: number, isCalm: boolean): Promise<string[]> {
  const faults: string[] = [];
  for (let service = 0; service * TOGETHER < requests && faults.length === 0; service++) {
    if (ONLY !== undefined && service !== Number(ONLY)) continue;
    const budget = isCalm ? 1000 : new Draw(seed + service).one(BUDGETS);
    const plans = Array.from({ length: TOGETHER }, (_, i) => planOf(seed, service * TOGETHER + i, isCalm));
    await new FuzzedService(isCalm, budget, (what) => faults.push(`SEED=${seed} SERVICE=${service}, ${what}`)).run(
      plans,
    );
  }
  return faults;
}

/** What is asserted of which plugins. */
const KINDS = {
  calm: 'plugins that cost no time misbehave, and no budget pays for what they wait for',
  wild: 'plugins misbehave in every way, and clients leave',
};

/**
 * Has plugins misbehave at every stage, in as many requests, from a seed. Whatever they do, each request ends with a response or a
 * refusal, settles once for each answer, and is neither signed nor released after that; each run ends, each rejection is
 * handled, a client gets nothing that nobody signed, and no budget pays for what a plugin waits for.
 */
export function fuzzPipelines(kind: keyof typeof KINDS, requests: number): void {
  it(KINDS[kind], async () => {
    assert.deepEqual(await faultsOf(requests, kind === 'calm'), []);
  });
}
