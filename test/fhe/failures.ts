import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { generateToyKeys } from './keys.ts';
import type { Relayer } from './relayer.ts';
import { API_KEY, fheFor, reasons } from './service.ts';

/** A way for a relayer, or the node beside it, to fail. */
export interface Failure {
  readonly name: string;
  readonly sabotage: (relayer: Relayer) => void;
  /** All of the reason in the log. */
  readonly reason: RegExp;
}

/** Each failure is `502 FHE encryption failed`; why is in the log alone, and no secret with it. */
export function assertFailures(title: string, failures: readonly Failure[]): void {
  describe(title, { concurrency: 3 }, async () => {
    const keys = generateToyKeys();
    const upstream = await upstreamFor(suite, { '/small': faults.json({ v: 200 }) });

    for (const { name, sabotage, reason } of failures) {
      it(name, async (t) => {
        const { relayer, service } = await fheFor(t, upstream, { keys, signers: 2 });
        sabotage(relayer);
        await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
        const [why] = reasons(service);
        assert.match(String(why), reason);
        const log = JSON.stringify(service.logs);
        for (const secret of [API_KEY, relayer.rpcUrl]) assert.ok(!log.includes(secret), secret);
      });
    }
  });
}
