/** Replicas share cached answers by the engine, and do without when it fails. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReplicaAnswers } from '../../../builtins/cache/replicas.ts';
import { answerStatement } from '../../../lib/eth/statements.ts';
import { SignedResponse } from '../../../plugins-sdk/index.ts';
import { createSigner } from '../../../plugins-sdk/signing/local-key.ts';
import { MemoryArea, type StateArea, StateUnavailable } from '../../../plugins-sdk/state.ts';
import { testQuestion } from '../../../plugins-sdk/testing/around.ts';
import { testEndpoint } from '../../../service/testing.ts';
import { TEST_KEY } from '../../support/service.ts';

const MAX_AGE = 60_000;
const NOW = 1_700_000_000_000;
const signer = createSigner(TEST_KEY.slice(2));
const QUESTION = testQuestion();
const endpoint = testEndpoint();

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
  const replica = () => new ReplicaAnswers(change(area), { node: signer.address, now: () => clock.now });
  return { clock, area, replica };
}

const place = { key: 'key', maxAge: MAX_AGE, endpointId: endpoint.id, question: QUESTION };

describe('an answer that no process has', () => {
  it('is that of the first that stores one, for all', async () => {
    const { replica } = setUp();
    const [one, other] = [replica(), replica()];
    assert.deepEqual([await one.find(place), await other.find(place)], [undefined, undefined]);
    assert.equal(await one.store(answer('a'), place), undefined);
    const first = await other.store(answer('b'), place);
    assert.deepEqual([first?.value.json, first?.ttl], [answer('a').json, MAX_AGE]);
    assert.equal((await other.find(place))?.value.json, answer('a').json);
  });
});

describe('an engine that fails', () => {
  it('lets each process go on alone', async () => {
    const fail = () => Promise.reject(new StateUnavailable('away'));
    const { replica } = setUp(() => ({ get: fail, compareAndSet: fail, takeTokens: fail }));
    assert.deepEqual([await replica().find(place), await replica().store(answer('a'), place)], [undefined, undefined]);
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
      const { replica, area } = setUp();
      await area.compareAndSet('key', undefined, text);
      assert.deepEqual(
        [await replica().find(place), await replica().store(answer('a'), place)],
        [undefined, undefined],
      );
    }
    const { replica, area } = setUp();
    await area.compareAndSet('key', undefined, `${NOW} ${good}`);
    assert.equal((await replica().find(place))?.value.json, good);
  });
});

describe('answers in the engine', () => {
  it('are no more than 64 MiB of this process, until they end', async (t) => {
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    const { area, replica } = setUp();
    const replicas = replica();
    const large = answer('x'.repeat(8 * 1024 * 1024));
    const store = async (key: string) => {
      await replicas.store(large, { ...place, key });
      return (await area.get(key)) !== undefined;
    };
    const kept = [];
    for (const key of ['a', 'b', 'c', 'd']) kept.push(await store(key));
    assert.deepEqual(kept, [true, true, true, false]);
    now += MAX_AGE;
    assert.equal(await store('e'), true);
  });

  it('are as old as their maker’s clock says, and never older than they may be', async () => {
    const { replica, clock } = setUp();
    const one = replica();
    await one.store(answer('a', { timestamp: NOW / 1000 - 600 }), place);
    clock.now += MAX_AGE - 10;
    assert.equal((await one.find(place))?.ttl, 10);
    clock.now -= 2 * MAX_AGE;
    assert.equal((await one.find(place))?.ttl, MAX_AGE);
  });
});
