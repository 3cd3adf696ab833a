/** Whatever a function throws, rejects with or never settles has one outcome, which the table of stages says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { control } from '../../kernel/exchange.ts';
import type { CallEvent } from '../../kernel/hooks.ts';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';
import { stages } from '../../kernel/stages.ts';
import {
  ask,
  closedInner,
  dropped,
  dropping,
  exhausted,
  failures,
  given,
  hostile,
  internal,
  newExchange,
  open,
  outgoing,
  raise,
  run,
  seal,
  spent,
  thenable,
  untouched,
} from './guarded.ts';

describe('the table of stages', () => {
  it('is what these tests take it for', () => {
    assert.deepEqual(dropping, ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign']);
    assert.deepEqual(open, ['attest', 'concluded', 'respond', 'onResponseSent', 'onError']);
    assert.deepEqual(closedInner, [
      'admit',
      'resolve',
      'parseBody',
      'price',
      'authenticate',
      'validate',
      'vary',
      'prepare',
      'present',
      'answer',
      'callApi',
      'encode',
      'encrypt',
      'statements',
      'sign',
      'approve',
    ]);
  });
});

describe('a function that heeds its signal', () => {
  it('is no failure of its plugin once the client has left', async () => {
    const calls: unknown[] = [];
    for (const stage of ['onBeforeSign', 'encrypt', 'callApi', 'attest', 'onResponseSent'] as const) {
      const observer = { call: ({ outcome }: CallEvent) => void calls.push([stage, outcome]) };
      const exchange = newExchange();
      const fn = () => {
        control.disconnect(exchange);
        throw new DOMException('This operation was aborted', 'AbortError');
      };
      const { outcome, complaints } = await run(stage, fn, { exchange, observer });
      const isWatch = stage === 'onResponseSent';
      const goesOn = stage === 'attest' || isWatch;
      assert.deepEqual(
        outcome,
        goesOn ? { value: undefined } : { status: 499, message: 'Client closed request', reason: undefined },
        stage,
      );
      assert.equal(complaints.length, isWatch ? 1 : 0, stage);
    }
    assert.deepEqual(calls, [
      ['onBeforeSign', 'done'],
      ['encrypt', 'done'],
      ['callApi', 'done'],
      ['attest', 'done'],
      ['onResponseSent', 'failed'],
    ]);
  });
});

describe('a function that fails', () => {
  for (const [name, fn, reason] of failures) {
    it(`and ${name}`, async () => {
      for (const stage of dropping) assert.deepEqual((await run(stage, fn)).outcome, dropped(reason), stage);
      for (const stage of closedInner)
        assert.deepEqual((await run(stage, fn)).outcome, internal(`plugin "p": ${reason}`), stage);
      for (const stage of open) {
        const { outcome, complaints, exchange } = await run(stage, fn);
        assert.deepEqual(outcome, { value: untouched[stage] }, stage);
        assert.deepEqual(
          complaints.map((complaint) => [complaint.plugin, complaint.stage, complaint.requestId]),
          [['p', stage, exchange.requestId]],
        );
      }
    });

    it(`without a budget and ${name}`, async () => {
      assert.deepEqual((await run('onBeforeSign', fn, { budget: 'none' })).outcome, dropped(reason));
      assert.deepEqual((await run('sign', fn, { budget: 'none' })).outcome, internal(`plugin "p": ${reason}`));
    });
  }

  it('after another that was asynchronous', async () => {
    const { hooks } = seal([{ onBeforeSign: async () => undefined }, { onBeforeSign: raise(Object.create(null)) }]);
    const { status, message } = asRefusal(await hooks.onBeforeSign('0x01', newExchange()).catch((e) => e));
    assert.deepEqual([status, message], [403, 'Request dropped by plugin "q"']);
  });

  it('throws what cannot be read', async () => {
    assert.deepEqual((await run('onBeforeSign', raise(hostile()))).outcome, dropped('an error that cannot be shown'));
    assert.deepEqual((await run('onError', raise(hostile()))).outcome, { value: undefined });
  });

  it('returns a promise that cannot be resolved', async () => {
    const broken = () => Object.defineProperty(Promise.resolve(), 'constructor', { get: raise(new Error('boom')) });
    const budget = 'none';
    assert.deepEqual((await run('onBeforeSign', broken, { budget })).outcome, dropped('Error: boom'));
    assert.deepEqual((await run('onError', broken, { budget })).outcome, { value: undefined });
  });

  it('is told about with the very error', async () => {
    const error = new Error('boom');
    const { complaints } = await run('concluded', raise(error));
    assert.equal(complaints[0]?.error, error);
  });

  it('cannot choose an answer in a public hook: a refusal is a drop there', async () => {
    for (const stage of dropping) {
      const { outcome } = await run(stage, raise(new Refusal(402, 'Pay')));
      assert.deepEqual(outcome, dropped('Pay'), stage);
    }
  });

  it('is passed on as it is when it threw a refusal in an inner stage', async () => {
    const refusal = new Refusal(402, 'Pay', { body: { price: 1 }, headers: { 'x-a': 'b' } });
    for (const stage of closedInner) {
      for (const fn of [raise(refusal), () => Promise.reject(refusal)]) {
        const { hooks } = seal([{ [stage]: stages[stage].variants === undefined ? fn : { v: fn } }]);
        const error: unknown = await hooks[stage](...given[stage], newExchange()).catch((caught) => caught);
        const { status, message, body, headers, reason } = asRefusal(error);
        const expected = { status: 402, message: 'Pay', body: { price: 1 }, headers: { 'x-a': 'b' } };
        assert.deepEqual({ status, message, body, headers, reason }, { ...expected, reason: undefined }, stage);
      }
    }
  });

  it('is passed on when the refusal is that of another copy of the SDK', async () => {
    const foreign = Object.assign(new Error('Pay'), { [Symbol.for('signed-data-proxy.refusal')]: true, status: 402 });
    assert.deepEqual((await run('sign', raise(foreign))).outcome, { status: 402, message: 'Pay', reason: undefined });
  });

  it('is complained about also when it threw a refusal, where the stage is open', async () => {
    const refusal = new Refusal(503, 'Server busy');
    const { outcome, complaints } = await run('attest', raise(refusal));
    assert.deepEqual(outcome, { value: undefined });
    assert.equal(complaints[0]?.error, refusal);
  });

  it('does not keep the others from being asked, where the stage is open', async () => {
    const seen: string[] = [];
    const tables = [raise(new Error('boom')), () => Promise.reject(new Error('boom'))].map((fn) => ({
      attest: fn,
      concluded: fn,
      onError: fn,
      respond: fn,
    }));
    const last = {
      attest: () => ({ a: 1 }),
      concluded: () => void seen.push('concluded'),
      onError: () => void seen.push('onError'),
      respond: (headers: object) => ({ ...headers, a: 'b' }),
    };
    const { hooks, complaints } = seal([...tables, last]);
    assert.deepEqual(await ask(hooks.attest, outgoing, newExchange()), { value: { a: 1 } });
    assert.deepEqual(await ask(hooks.concluded, ...given.concluded, newExchange()), { value: undefined });
    assert.deepEqual(await ask(hooks.onError, ...given.onError, newExchange()), { value: undefined });
    assert.deepEqual(await ask(hooks.respond, {}, newExchange()), { value: { a: 'b' } });
    assert.deepEqual(seen, ['concluded', 'onError']);
    const culprits = complaints.map(({ plugin, stage }) => `${plugin} ${stage}`);
    const expected = ['attest', 'concluded', 'onError', 'respond'].flatMap((stage) => [`p ${stage}`, `q ${stage}`]);
    assert.deepEqual(culprits, expected);
  });

  it('keeps the others from being asked, where the stage is closed', async () => {
    const { hooks } = seal([{ encrypt: raise(new Error('boom')) }, { encrypt: () => assert.fail('asked') }]);
    assert.deepEqual(await ask(hooks.encrypt, '0x01', newExchange()), internal('plugin "p": Error: boom'));
  });
});

describe('a thenable', () => {
  const answered = (then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void) =>
    run('onBeforeSign', () => thenable(then));

  it('that never calls back ends with the budget', async () => {
    const { outcome } = await run('onBeforeSign', () => thenable(() => undefined), { budget: 5 });
    assert.deepEqual(outcome, exhausted(spent(5)));
  });

  it('counts once', async () => {
    const twice = await answered((resolve, reject) => {
      resolve({ data: '0x02' });
      resolve({ data: '0x03' });
      reject(new Error('boom'));
      throw new Error('boom');
    });
    assert.deepEqual(twice.outcome, { value: '0x02' });
    const other = await answered((resolve, reject) => {
      reject(new Error('first'));
      resolve({ data: '0x02' });
    });
    assert.deepEqual(other.outcome, dropped('Error: first'));
  });

  it('fails as a promise whose own then throws', async () => {
    const pending = Promise.resolve();
    Reflect.set(pending, 'then', raise(new Error('no then')));
    const { outcome } = await run('onBeforeSign', () => pending);
    assert.deepEqual(outcome, dropped('Error: no then'));
  });

  it('is followed to its end', async () => {
    const { outcome } = await answered((resolve) => resolve(Promise.resolve({ data: '0x02' })));
    assert.deepEqual(outcome, { value: '0x02' });
  });

  it('needs a function: other values called then are none', async () => {
    const { outcome } = await run('onBeforeSign', () => Object.assign(thenable(true), { data: '0x02' }));
    assert.deepEqual(outcome, { value: '0x02' });
  });
});
