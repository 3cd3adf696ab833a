/** Replicas share cached answers by the engine, and do without when it fails. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { searching } from '../../../builtins/cache/replicas.ts';
import { answerStatement } from '../../../lib/eth/statements.ts';
import { SignedResponse } from '../../../plugins-sdk/index.ts';
import { createSigner } from '../../../plugins-sdk/signing/local-key.ts';
import { MemoryArea, type StateArea, StateUnavailable } from '../../../plugins-sdk/state.ts';
import { sampleQuestion } from '../../../plugins-sdk/testing/values.ts';
import { testEndpoint } from '../../../service/testing.ts';
import { TEST_KEY } from '../../support/service.ts';
import { retried } from '../../support/wait.ts';

const MAX_AGE = 60_000;
const TIMEOUT = 2500;
const NOW = 1_700_000_000_000;
const signer = createSigner(TEST_KEY.slice(2));
const endpoint = testEndpoint({ apiBlock: { timeout: TIMEOUT } });

/** A signed answer of the endpoint; what is given differs. */
function answer(data: string, { timestamp = NOW / 1000, endpointId = endpoint.id, by = signer } = {}): SignedResponse {
  const shown = `0x${Buffer.from(data).toString('hex')}` as const;
  const signature = by.sign(answerStatement({ endpointId, timestamp, data: shown }));
  const { address: node } = by;
  return SignedResponse.of({ node, endpointId, timestamp, field: 'data', value: shown, signature, proof: undefined });
}

function setUp(change: (area: StateArea) => StateArea = (area) => area) {
  const clock = { now: NOW };
  const area = new MemoryArea({ now: () => clock.now });
  const replica = () => searching({ area: change(area), node: signer.address, now: () => clock.now });
  const client = new AbortController();
  const search = (replica: ReturnType<typeof searching>, timeout = TIMEOUT, key = 'key', maxAge = MAX_AGE) => {
    const asking = { endpoint: { ...endpoint, apiBlock: { timeout } }, clientSignal: client.signal };
    return replica(key, maxAge, sampleQuestion, asking);
  };
  return { clock, area, replica, search, client };
}

describe('an answer that no process has', () => {
  it('is made by one, and the other waits for it', async () => {
    const { replica, search } = setUp();
    const [one, other] = [replica(), replica()];
    const { unlock, found } = await search(one);
    assert.equal(found, undefined);
    const waiting = search(other);
    unlock?.(answer('a'));
    const late = await waiting;
    assert.equal(late.found?.value.json, answer('a').json);
    assert.equal(late.unlock, undefined);
    assert.equal((await search(one)).found?.ttl, MAX_AGE);
  });

  it('is made by the other when the first one fails', async () => {
    const { replica, search } = setUp();
    const { unlock } = await search(replica());
    const waiting = search(replica());
    unlock?.();
    assert.notEqual((await waiting).unlock, undefined);
  });

  it('is made by the other when the first one dies, after two timeouts of a call', async () => {
    const { replica, search, clock } = setUp();
    await search(replica());
    clock.now += 2 * TIMEOUT - 1;
    assert.deepEqual(await search(replica(), 30), {});
    clock.now += 1;
    assert.notEqual((await search(replica())).unlock, undefined);
  });

  it('is made by both when two timeouts of a call are over, or the client has left', async () => {
    const { replica, search, client } = setUp();
    const { unlock } = await search(replica());
    assert.deepEqual(await search(replica(), 30), {});
    client.abort();
    assert.deepEqual(await search(replica()), {});
    unlock?.();
  });

  it('was stored between two looks: the lock is given back', async () => {
    let looks = 0;
    const { replica, search, area } = setUp((inner) => ({
      compareAndSet: inner.compareAndSet.bind(inner),
      takeTokens: inner.takeTokens.bind(inner),
      get: async (key) => {
        looks += 1;
        const text = await inner.get(key);
        if (looks === 1) await inner.compareAndSet(key, undefined, `${NOW} ${answer('b').json}`);
        return text;
      },
    }));
    const { found, unlock } = await search(replica());
    assert.deepEqual([found?.value.json, unlock], [answer('b').json, undefined]);
    assert.equal(await area.get('lock key'), undefined);
  });
});

describe('an engine that fails', () => {
  it('lets each process go on alone', async () => {
    for (const failing of [1, 2, 3]) {
      let asked = 0;
      const fail = () => {
        asked += 1;
        if (asked === failing) throw new StateUnavailable('away');
      };
      const { replica, search } = setUp((inner) => ({
        takeTokens: inner.takeTokens.bind(inner),
        get: async (key) => {
          fail();
          return inner.get(key);
        },
        compareAndSet: async (...args) => {
          fail();
          return inner.compareAndSet(...args);
        },
      }));
      const { found, unlock } = await search(replica());
      assert.deepEqual([found, unlock], [undefined, undefined], `${failing}`);
    }
  });

  it('and what is no answer of this service to this question, are a miss', async () => {
    const other = createSigner(`${'0'.repeat(63)}1`);
    const good = answer('a').json;
    const texts = [
      ...['', 'x', `1 {"node":1}`, `NaN ${good.slice(1)}`, `${NOW} ${good.replace('0x61', '0x62')}`],
      `${NOW} ${answer('a', { timestamp: NOW / 1000 + 1 }).json}`,
      `${NOW} ${answer('a', { endpointId: `0x${'22'.repeat(32)}` }).json}`,
      `${NOW} ${answer('a', { by: other }).json}`,
    ];
    for (const text of texts) {
      const { replica, search, area } = setUp();
      await area.compareAndSet('key', undefined, text);
      const { found, unlock } = await search(replica());
      assert.deepEqual([found, unlock === undefined], [undefined, false], text);
      unlock?.();
    }
    const { replica, search, area } = setUp();
    await area.compareAndSet('key', undefined, `${NOW} ${good}`);
    assert.equal((await search(replica())).found?.value.json, good);
  });
});

describe('answers in the engine', () => {
  it('are at most 64 MiB for a maxAge, and as many more while that lasts', async () => {
    const { area, replica, search, clock } = setUp();
    const [replicas, large, long] = [replica(), answer('x'.repeat(8 * 1024 * 1024)), 2 ** 32];
    const store = async (key: string, maxAge = MAX_AGE) => {
      const { unlock } = await search(replicas, 1, key, maxAge);
      unlock?.(large);
      await retried(async () => assert.equal(await area.get(`lock ${key}`), undefined));
      return (await area.get(key)) !== undefined;
    };
    const kept = [];
    for (const key of ['a', 'b', 'c', 'd']) kept.push(await store(key, long));
    assert.deepEqual(kept, [true, true, true, false]);
    assert.equal(await store('e'), true, 'another maxAge');
    clock.now += long / 8;
    assert.equal(await store('d', long), true, 'an eighth is free again');
    assert.equal(await store('f', long), false);
  });

  it('are as old as their maker’s clock says, and never older than they may be', async () => {
    const { replica, search, clock } = setUp();
    const one = replica();
    (await search(one)).unlock?.(answer('a', { timestamp: NOW / 1000 - 600 }));
    await retried(async () => assert.notEqual((await search(replica())).found, undefined));
    clock.now += MAX_AGE - 10;
    assert.equal((await search(one)).found?.ttl, 10);
    clock.now -= 2 * MAX_AGE;
    assert.equal((await search(one)).found?.ttl, MAX_AGE);
  });
});
