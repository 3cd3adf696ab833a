/** An encoding is read once, into a plan that tells what a request may choose. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkPinned,
  PlanError,
  parseMultipliers,
  parsePaths,
  parseTypes,
  planOf,
} from '../../builtins/encode-abi/plan.ts';

const operator = 'operator';

function planned(type: string, path: string, times?: string) {
  const lists = { types: parseTypes(type, operator), paths: parsePaths(path, operator) };
  return planOf({ ...lists, exact: false, times: times === undefined ? undefined : parseMultipliers(times, operator) });
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
    assert.throws(() => parseTypes('int256,', operator), blames('type'));
    assert.throws(() => parseTypes('int8', 'requester'), blames('type'));
    assert.throws(() => parsePaths('$.a[?(@.b)]', 'requester'), blames('path'));
    assert.throws(() => parseMultipliers('1e100', operator), blames('times'));
    assert.throws(() => parsePaths('x'.repeat(1025), 'requester'), blames('path'));
  });

  it('let a requester send 1 for a type that is no integer, and an operator nothing', () => {
    assert.deepEqual(shown('bool', '$.a', '1'), [['bool', '$.a', undefined, undefined]]);
    const types = parseTypes('bool', operator);
    assert.throws(() => checkPinned({ types, times: parseMultipliers('1', operator) }, false), blames('times'));
    assert.throws(() => checkPinned({ types }, true), blames('times'));
    checkPinned({ types: parseTypes('bool,int8', operator) }, true);
    checkPinned({ times: parseMultipliers('1', operator) }, false);
  });
});
