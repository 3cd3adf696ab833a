/** An encoding is read once, into a plan that tells what a request may choose. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Field, type Lists, PlanError, readList } from '../../builtins/encode-abi/lists.ts';
import { checkPinned, planOf } from '../../builtins/encode-abi/plan.ts';

const read = (field: Field, text: string) => readList(field, text, { declared: [] });
const chosen = (field: Field, text: string) => readList(field, text, 'requester');

function planned(type: string, path: string, times?: string) {
  const lists: Lists = { ...read('type', type), ...read('path', path) };
  return planOf(times === undefined ? lists : { ...lists, ...read('times', times) });
}

const shown = (type: string, path: string, times?: string) =>
  planned(type, path, times).map(({ type: { name }, path: { text }, times: by }) => [
    name,
    text,
    by?.digits,
    by?.exponent,
  ]);

const blames = (field: string) => (error: unknown) => error instanceof PlanError && error.field === field;

describe('plans of encodings', () => {
  it('match lists by position; a single multiplier is for all, an empty one for none', () => {
    assert.deepEqual(shown('int256,uint8', '$.a,$.b', '1e18,'), [
      ['int256', '$.a', '1', 18],
      ['uint8', '$.b', undefined, undefined],
    ]);
    assert.deepEqual(shown('int256, uint8', '$.a, $.b', '20'), [
      ['int256', '$.a', '2', 1],
      ['uint8', '$.b', '2', 1],
    ]);
    assert.deepEqual(shown('bool', "$['a,b']"), [['bool', "$['a,b']", undefined, undefined]]);
  });

  it('blame the member that does not fit', () => {
    assert.throws(() => planned('int256,bool', '$.a'), blames('path'));
    assert.throws(() => planned('int256', '$.a', '1,2'), blames('times'));
    assert.throws(() => planned('bool', '$.a', '2'), blames('times'));
    assert.throws(() => read('type', 'int256,'), blames('type'));
    assert.throws(() => chosen('type', 'int8'), blames('type'));
    assert.throws(() => chosen('path', '$.a[?(@.b)]'), blames('path'));
    assert.throws(() => read('times', '1e100'), blames('times'));
    assert.throws(() => chosen('path', 'x'.repeat(1025)), blames('path'));
  });

  it('let a requester send 1 for a type that is no integer, and an operator nothing', () => {
    assert.deepEqual(shown('bool', '$.a', '1'), [['bool', '$.a', undefined, undefined]]);
    assert.throws(() => checkPinned({ ...read('type', 'bool'), ...read('times', '1') }, false), blames('times'));
    assert.throws(() => checkPinned(read('type', 'bool'), true), blames('times'));
    checkPinned(read('type', 'bool,int8'), true);
    checkPinned(read('times', '1'), false);
  });
});
