/** Results of the wrong shape are failures that name what is wrong; those of the right shape arrive as copies. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asRefusal } from '../../kernel/refusal.ts';
import type { StageName } from '../../kernel/stages.ts';
import {
  answer,
  askable,
  closedInner,
  dropped,
  newExchange,
  question,
  run,
  seal,
  untouched,
  WRONG_SHAPE,
} from './guarded.ts';

/** What the other stages may not return. */
const wrongInside: { readonly [N in StageName]?: readonly unknown[] } = {
  admit: [null, false, 1, {}],
  resolve: [null, true, {}, { id: 1 }, '0x11'],
  parseBody: [null, true, 'a'],
  price: [1, '1', -1n, true, {}],
  authenticate: [null, false, 1, 'ada'],
  validate: [null, true, 'a'],
  present: [null, {}, { status: 200 }, { status: '200', body: '' }, { status: 200, body: {} }],
  vary: [null, 1, {}, 'a'.repeat(4097)],
  prepare: [null, {}, { ...question }],
  answer: [null, true, {}, { json: {} }, { json: answer.json }],
  callApi: [null, {}, { status: 200 }, { status: 200.5, data: 1 }, { status: 200, data: undefined }],
  encode: [null, {}, { bytes: '0x0', field: 'data' }, { bytes: '0x01' }],
  encrypt: [null, '', '0x', '0x1', 1],
  statements: [null, {}, [1], [{ name: 'data', shown: {}, typed: {} }], [{ name: 'a', shown: {}, typed: {} }]],
  sign: [null, {}, { node: '0x01' }, { node: '0x01', signature: 'no' }],
  attest: [null, true, 'a'],
  approve: [null, false, 1, {}],
  respond: [null, true, 'a'],
};

describe('a result of the wrong shape', () => {
  for (const stage of closedInner) {
    it(`is a 500 in ${stage}`, async () => {
      const values = wrongInside[stage] ?? [];
      assert.ok(values.length > 0);
      for (const value of values) {
        const { outcome } = await run(stage, () => value);
        const { reason, ...refused } = { reason: undefined, ...outcome };
        assert.deepEqual(refused, { status: 500, message: 'Internal server error' });
        assert.match(reason ?? '', WRONG_SHAPE);
      }
    });
  }

  for (const stage of ['attest', 'respond'] as const) {
    it(`is complained about in ${stage}`, async () => {
      for (const value of wrongInside[stage] ?? []) {
        const { outcome, complaints } = await run(stage, () => value);
        assert.deepEqual(outcome, { value: untouched[stage] });
        assert.deepEqual(
          complaints.map(({ error }) => WRONG_SHAPE.test(`plugin "p": ${error}`)),
          [true],
        );
      }
    });
  }

  it('is headers that no client takes', async () => {
    const fits = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`x-${i}`, 'a'.repeat(90)]));
    assert.deepEqual((await run('respond', () => fits)).outcome, { value: Object.assign({}, untouched.respond, fits) });
    const { outcome, complaints } = await run('respond', () => ({ ...fits, 'x-80': 'a'.repeat(1024) }));
    assert.deepEqual(outcome, { value: untouched.respond });
    const message = 'Error: returned something of the wrong shape: the headers are longer than 8192 characters';
    assert.deepEqual(
      complaints.map(({ error }) => String(error)),
      [message],
    );
  });

  it('cannot be: what observers return is nobody’s business', async () => {
    for (const stage of ['concluded', 'onResponseSent', 'onError'] as const) {
      for (const value of [null, false, 1, 'a', {}, []]) {
        const { outcome, complaints } = await run(stage, async () => value);
        assert.deepEqual({ outcome, complaints }, { outcome: { value: undefined }, complaints: [] });
      }
    }
  });

  it('is one more way to drop: parameters that are an instance of a class', async () => {
    const { outcome } = await run('onBeforeApiCall', () => ({ parameters: new Map([['a', 1]]) }));
    assert.deepEqual(outcome, dropped('Error: "parameters" is no object'));
  });
});

describe('a result of the right shape', () => {
  const accepted = async (stage: StageName, value: unknown) => (await run(stage, () => value)).outcome;

  it('of onHttpRequest', async () => {
    assert.deepEqual(await accepted('onHttpRequest', { reject: false, status: 'x' }), { value: undefined });
    const rejections = [
      [{ reject: true }, 403, 'Request rejected by plugin "p"'],
      [{ reject: true, status: undefined, message: undefined }, 403, 'Request rejected by plugin "p"'],
      [{ reject: true, status: 400, message: '' }, 400, ''],
      [{ reject: true, status: 599, message: 'No' }, 599, 'No'],
    ] as const;
    for (const [value, status, message] of rejections) {
      const { hooks } = seal([{ onHttpRequest: () => value }, { onHttpRequest: () => assert.fail('asked') }]);
      const refusal = asRefusal(await hooks.onHttpRequest(newExchange()));
      assert.deepEqual([refusal.status, refusal.message, refusal.body], [status, message, { error: message }]);
    }
  });

  it('with no member misspelt: what it would have said must not be ignored', async () => {
    const misspelt = [
      ['onHttpRequest', { reject: true, stauts: 429 }, 'stauts', 'status'],
      ['onHttpRequest', { reject: true, mesage: 'No' }, 'mesage', 'message'],
      ['onBeforeApiCall', { parameters: {}, Parameters: {} }, 'Parameters', 'parameters'],
      ['onAfterApiCall', { data: 1, Status: 500 }, 'Status', 'status'],
      ['onBeforeSign', { data: '0x02', Data: '0x03' }, 'Data', 'data'],
    ] as const;
    for (const [stage, value, name, meant] of misspelt) {
      const reason = `Error: returned a member "${name}", did you mean "${meant}"?`;
      assert.deepEqual(await accepted(stage, value), dropped(reason), stage);
    }
    assert.deepEqual(await accepted('onBeforeSign', { data: '0x02', why: 'because' }), { value: '0x02' });
  });

  it('of onBeforeApiCall', async () => {
    const data = JSON.parse('{"a":[1,{"b":null}],"__proto__":{"c":true},"":"\\ud800"}');
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: data }), { value: data });
    const sparse = { a: undefined, b: [undefined, 1], c: { d: undefined } };
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: sparse }), { value: { b: [null, 1], c: {} } });
    assert.deepEqual(await accepted('onBeforeApiCall', { parameters: nullPrototype() }), { value: { a: 1 } });
  });

  it('of onAfterApiCall', async () => {
    assert.deepEqual(await accepted('onAfterApiCall', { data: null }), { value: { data: null, status: 200 } });
    assert.deepEqual(await accepted('onAfterApiCall', { data: [1], status: 404 }), {
      value: { data: [1], status: 404 },
    });
  });

  it('of onBeforeSign', async () => {
    assert.deepEqual(await accepted('onBeforeSign', { data: '0x' }), { value: '0x' });
    assert.deepEqual(await accepted('onBeforeSign', { data: '0xABcd' }), { value: '0xABcd' });
  });

  it('may always be undefined', async () => {
    for (const stage of askable) {
      const { outcome, complaints } = await run(stage, () => undefined);
      assert.deepEqual({ outcome, complaints }, { outcome: { value: untouched[stage] }, complaints: [] }, stage);
    }
  });
});

function nullPrototype(): object {
  return Object.assign(Object.create(null), { a: 1 });
}
