import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { generateToyKeys, type Keys } from './keys.ts';
import { type Relayer, startRelayer } from './relayer.ts';
import { API_KEY, reasons, startFheService } from './service.ts';

/** A way for a relayer, or the node beside it, to fail. */
export interface Failure {
  readonly name: string;
  readonly sabotage: (relayer: Relayer) => void;
  /** All of the reason in the log. */
  readonly reason: RegExp;
}

/** Each failure is `502 FHE encryption failed`; why is in the log alone, and no secret with it. */
export function assertFailures(title: string, failures: readonly Failure[]): void {
  describe(title, { concurrency: 3 }, () => {
    let keys: Keys;
    let upstream: Upstream;

    before(async () => {
      keys = generateToyKeys();
      upstream = await startUpstream();
      upstream.json('/small', { v: 200 });
    });
    after(() => upstream.close());

    for (const { name, sabotage, reason } of failures) {
      it(name, async () => {
        const relayer = await startRelayer({ keys, signers: 2 });
        sabotage(relayer);
        const service = await startFheService(relayer, upstream);
        try {
          await assertRefused(await service.post('api/small'), 502, 'FHE encryption failed');
          const [why] = reasons(service);
          assert.match(String(why), reason);
          const log = JSON.stringify(service.logs);
          for (const secret of [API_KEY, relayer.rpcUrl]) assert.ok(!log.includes(secret), secret);
        } finally {
          await service.stop();
          await relayer.close();
        }
      });
    }
  });
}
