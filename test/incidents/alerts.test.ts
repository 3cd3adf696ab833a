/** Alerts without a row among the symptoms: what they warn of is made to happen, and promtool says that they fire. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { assertFires, assertFiring, type Seen, withoutPromtool } from '../support/alerts.ts';
import { suite } from '../support/lifetime.ts';
import { Scrape, scrape, scrapeUntil } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { encoding, oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { RECIPIENT } from '../support/x402.ts';

const metrics = { port: 0 };
/** Nobody listens there. */
const NOWHERE = 'http://127.0.0.1:9/';

/** What makes an alert fire. */
interface Drill {
  readonly alert: string;
  happen(): Promise<unknown>;
  /** Whether the metrics show that it has happened so often. */
  shows(found: Scrape, count: number): boolean;
  readonly times?: number;
  /** For which each is seen. */
  readonly minutes?: number;
}

/** Has promtool say that the alert fires after what happens, and not before. */
async function assertDrill(t: TestContext, service: RunningService, drill: Drill): Promise<void> {
  const { alert, happen, shows, times = 1, minutes = 6 } = drill;
  const seen: Seen[] = [{ scrape: await scrape(service), minutes: 40 }];
  for (let count = 1; count <= times; count++) {
    await happen();
    const isShown = (found: Scrape) => shows(found, count);
    seen.push({ scrape: await scrapeUntil(service, isShown, `${alert}: ${shows}`), minutes });
  }
  await assertFires(t, seen, [alert]);
}

describe('an alert', { skip: withoutPromtool }, async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1000 }), '/later': faults.serverError() });

  const post = async (service: RunningService, name: string, status: number, headers = {}) =>
    assert.equal((await service.post(`api/${name}`, undefined, headers)).status, status);

  it('says that nobody answers', async (t) => {
    const up = (value: number) => new Scrape(`up{job="signed-data-proxy",instance="a"} ${value}\n`);
    const seen = [1, 0].map((value) => ({ scrape: up(value), minutes: 3 }));
    await assertFires(t, seen, ['ServiceDown']);
  });

  it('does not say that a signer fails of which too much is asked, as any client can', async (t) => {
    const outcome = (name: string, value: number) => ({
      scrape: new Scrape(`signed_data_proxy_remote_signatures_total{signer="current",outcome="${name}"} ${value}\n`),
      minutes: 3,
    });
    await assertFiring(t, [outcome('busy', 0), outcome('busy', 9)], ['SignerFails'], []);
    await assertFiring(t, [outcome('failed', 0), outcome('failed', 9)], ['SignerFails'], ['SignerFails']);
  });

  it('says that async requests, TLS proofs, encryptions or a reload have failed', async (t) => {
    const endpoints = {
      later: { mode: 'async' },
      proven: { responseMatches: [{ type: 'regex', value: 'price' }] },
      // The value is none of that type, which is found without a worker.
      encrypted: { encoding, encrypt: { type: 'euint8', contract: RECIPIENT } },
    };
    const fhe = { network: 'sepolia', rpcUrl: NOWHERE, relayerUrl: NOWHERE, verifier: RECIPIENT };
    const proof = { type: 'reclaim', gatewayUrl: NOWHERE };
    const config = oneApi(upstream.url, endpoints, { settings: { metrics, proof, fhe } });
    const service = await serviceFor(t, config);
    const fires = (drill: Drill) => assertDrill(t, service, drill);
    await fires({
      alert: 'BackgroundRequestsFail',
      happen: () => post(service, 'later', 202),
      shows: (found, count) => found.table('outcomes_total')['api later async refused'] === count,
      times: 4,
    });
    await fires({
      alert: 'TlsProofsFail',
      happen: () => post(service, 'proven', 200),
      shows: (found) => found.table('tls_proofs_total').failed === 1,
    });
    await fires({
      alert: 'EncryptionsFail',
      happen: () => post(service, 'encrypted', 502),
      shows: (found) => found.table('fhe_encryption_seconds_count').failed === 1,
    });
    await fires({
      alert: 'ConfigNotReloaded',
      happen: () => reload(service, { ...config, strange: 1 }),
      shows: (found) => found.value('config_last_reload_successful') === 0,
    });
  });

  it('says that upstream slots or async records run out', async (t) => {
    let goOn = () => undefined as void;
    upstream.on('/hang', (_, response) => {
      goOn = () => void response.end('1');
    });
    const api = { timeout: 600_000 };
    const server = { rateLimit: { max: 1_000_000 } };
    const endpoints = { hang: { mode: 'async' } };
    const settings = { metrics, maxConcurrentApiCalls: 1 };
    const service = await serviceFor(t, { ...oneApi(upstream.url, endpoints, { api, settings }), server });
    const ask = () => post(service, 'hang', 202);
    await assertDrill(t, service, {
      alert: 'UpstreamSlotsShort',
      happen: () => Promise.all([ask(), ask()]),
      shows: (found) => found.value('upstream_slots_waiting') === 1,
    });
    await assertDrill(t, service, {
      alert: 'AsyncStoreNearlyFull',
      happen: () => Promise.all(Array.from({ length: 90 }, ask)),
      shows: (found) => found.value('async_records') === 92,
    });
    // A stop waits for what is under way.
    upstream.json('/hang', 1);
    goOn();
  });

  it('says that a quota of upstream calls is nearly used', async (t) => {
    const service = await serviceFor(
      t,
      oneApi(upstream.url, { price: {} }, { api: { quota: { perDay: 10 } }, settings: { metrics } }),
    );
    const ask = async (times: number) => {
      for (let count = 0; count < times; count++) await post(service, 'price', 200);
    };
    await ask(8);
    await assertDrill(t, service, {
      alert: 'UpstreamQuotaNearlyUsed',
      happen: () => ask(1),
      shows: (found) => found.value('upstream_quota_used_ratio') === 0.9,
    });
  });

  describeServers('of the engine', (program) => {
    it('says that its commands take long, or that it is away', async (t) => {
      const redis = await redisFor(t, program);
      const settings = { metrics, state: { type: 'redis', url: redis.url } };
      const service = await serviceFor(t, oneApi(upstream.url, { kept: { cache: { maxAge: 1 } } }, { settings }));
      const commands = (found: Scrape) => found.table('state_command_duration_seconds_count').get ?? 0;
      let from = 0;
      await assertDrill(t, service, {
        alert: 'StateSlow',
        happen: async () => {
          from = commands(await scrape(service));
          await redis.command('CLIENT', 'PAUSE', '200');
          await post(service, 'kept', 200);
        },
        shows: (found) => commands(found) > from,
        times: 4,
        minutes: 3,
      });
      await assertDrill(t, service, {
        alert: 'StateAway',
        happen: () => redis.kill(),
        shows: (found) => found.value('state_available') === 0,
      });
      const refused = (found: Scrape) => found.table('state_commands_total')['get rejected'] ?? 0;
      await assertDrill(t, service, {
        alert: 'StateCommandsFail',
        happen: async () => {
          from = refused(await scrape(service));
          await post(service, 'kept', 200);
        },
        shows: (found) => refused(found) > from,
        times: 2,
        minutes: 3,
      });
    });
  });
});
