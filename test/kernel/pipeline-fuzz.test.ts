import assert from 'node:assert/strict';
import { it } from 'node:test';
import { planOf } from '../support/fuzz/plan.ts';
import { FuzzedService } from '../support/fuzz/service.ts';
import { Draw } from '../support/fuzz/situation.ts';
import { seed } from '../support/seed.ts';

/** Requests in all; `REQUESTS` has a run be longer or shorter, `SERVICE` be that of one service. */
const REQUESTS = Number(process.env.REQUESTS ?? 6000);
const ONLY = process.env.SERVICE;
/** Requests of one service; those of a wild one are under way at once. */
const TOGETHER = 50;

for (const [kind, isCalm] of [
  ['plugins that cost no time', true],
  ['plugins of any kind', false],
] as const) {
  it(`${kind} misbehave at every stage, and every request ends by the rules`, async () => {
    const faults: string[] = [];
    const unhandled = (error: unknown) => faults.push(`nobody handled ${String(error)}`);
    process.on('unhandledRejection', unhandled);
    const services = Math.ceil(REQUESTS / 2 / TOGETHER);
    for (let service = 0; service < services; service++) {
      if (ONLY !== undefined && service !== Number(ONLY)) continue;
      const draw = new Draw(seed + service);
      const blame = (what: string) => faults.push(`service ${service}, ${what}`);
      const plans = Array.from({ length: TOGETHER }, (_, i) => planOf(seed, service * TOGETHER + i, isCalm));
      await new FuzzedService(isCalm, isCalm ? 1000 : draw.one([3, 5, 8]), blame).run(plans);
    }
    process.off('unhandledRejection', unhandled);
    assert.deepEqual(faults, []);
  });
}
