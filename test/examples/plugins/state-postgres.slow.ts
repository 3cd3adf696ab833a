/** state-postgres keeps the state of a service in a database. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import plugin from '../../../examples/plugins/state-postgres.ts';
import type { StateEngine } from '../../../plugins-sdk/state/area.ts';
import { contract } from '../../state/contract.ts';
import { freePort } from '../../state/redis-server.ts';
import { retried } from '../../support/wait.ts';

const HOUR = 3_600_000;
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function open(url: string): StateEngine {
  const type = plugin.engines?.postgres ?? assert.fail('there is no such engine');
  return type.open({ url }, { log, now: Date.now, path: (relative) => relative });
}

/** PostgreSQL in this process, as a server. */
async function database() {
  const db = await PGlite.create();
  const port = await freePort();
  const server = new PGLiteSocketServer({ db, port, maxConnections: 20 });
  await server.start();
  return {
    db,
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres?sslmode=disable`,
    close: async () => {
      await server.stop();
      await db.close();
    },
  };
}

describe('state-postgres', () => {
  contract(async () => {
    const { url, close } = await database();
    const engine = open(url);
    await engine.start();
    return {
      area: () => engine.area(randomUUID()),
      close: async () => {
        await engine.close();
        await close();
      },
    };
  });
});

describe('state-postgres and its database', () => {
  let running: Awaited<ReturnType<typeof database>>;
  before(async () => {
    running = await database();
  });
  after(() => running.close());

  /** Engines of replicas that start at once. */
  const replicas = async (t: TestContext, count: number) => {
    const engines = Array.from({ length: count }, () => open(running.url));
    t.after(() => Promise.all(engines.map((engine) => engine.close())));
    await Promise.all(engines.map((engine) => engine.start()));
    return engines;
  };

  it('is shared by replicas that start at once, and outlives them', async (t) => {
    const areas = (await replicas(t, 3)).map((engine) => engine.area('shared'));
    const swaps = await Promise.all(areas.map((area) => area.compareAndSet('k', undefined, 'same')));
    const lost = swaps.filter((swap) => swap !== undefined);
    assert.deepEqual(lost, [{ value: 'same' }, { value: 'same' }]);
    const taken = await Promise.all(areas.map((area) => area.takeTokens('k', { max: 2, window: 1000 * HOUR })));
    assert.deepEqual(taken.map(({ granted }) => granted).toSorted(), [0, 1, 1]);
    const [later] = await replicas(t, 1);
    assert.equal(await later?.area('shared').get('k'), 'same');
  });

  it('removes what has ended once a minute', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const [engine] = await replicas(t, 1);
    const area = engine?.area('purged') ?? assert.fail();
    await area.compareAndSet('a', undefined, '1', { ttl: 0 });
    await area.compareAndSet('b', 'something', '1');
    await area.compareAndSet('c', undefined, '1', { ttl: HOUR });
    await area.compareAndSet('d', undefined, '1');
    await area.takeTokens('a', { max: 1, window: 1000 }, 0);
    await area.takeTokens('b', { max: 1, window: HOUR });
    t.mock.timers.tick(60_000);
    await retried(async () => {
      const { rows } = await running.db.query(
        `SELECT key FROM sdp_values WHERE key LIKE 'purged:%' UNION ALL
         SELECT 'bucket ' || key FROM sdp_buckets WHERE key LIKE 'purged:%' ORDER BY 1`,
      );
      assert.deepEqual(rows, [{ key: 'bucket purged:b' }, { key: 'purged:c' }, { key: 'purged:d' }]);
    });
  });

  it('doubts a database whose commits a crash may take', async (t) => {
    const doubts = async () => (await replicas(t, 1))[0]?.doubts();
    const off =
      'settings.state: synchronous_commit of the database is off, so that a crash may take commits: set it to on';
    const before = (await doubts()) ?? [];
    assert.ok(!before.includes(off), before.join());
    await running.db.exec('SET synchronous_commit TO off');
    assert.ok((await doubts())?.includes(off));
  });

  it('says why it cannot start', async () => {
    const port = await freePort();
    const engine = open(`postgres://user:s3cret@127.0.0.1:${port}/postgres`);
    const message = `settings.state: the database cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`;
    await assert.rejects(engine.start(), new Error(message));
    await engine.close();
  });
});
