/** Values of plugins are checked before they count. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WrongShape } from '../../kernel/stages.ts';
import type { OutgoingRequest } from '../../kernel/values.ts';
import { inputs, readersFor } from '../../plugins-sdk/results/contracts.ts';

const results = readersFor({ signers: [], now: Date.now, endpoints: new Set() });
const request: OutgoingRequest = { method: 'GET', url: 'http://h/', headers: {}, body: undefined };

function read(value: unknown): unknown {
  return results.response(value, [request], 'p');
}

const wrong = (message: RegExp) => (error: unknown) => error instanceof WrongShape && message.test(error.message);

describe('what a plugin varies a question by', () => {
  it('joins what others do, under its name', () => {
    const one = results.variation('a\n', ['', {}], 'p');
    assert.equal(one, '\n["p","a\\n"]');
    assert.equal(results.variation('', [one, {}], 'q'), '\n["p","a\\n"]\n["q",""]');
  });

  it('is a text that is not too long', () => {
    assert.throws(() => results.variation(1, ['', {}], 'p'), wrong(/must be a text/));
    assert.throws(() => results.variation('x'.repeat(4097), ['', {}], 'p'), wrong(/at most 4096 characters/));
    results.variation('x'.repeat(4096), ['', {}], 'p');
  });
});

it('a question is one that the SDK made', () => {
  const copy = { parameters: {}, reserved: {}, request, key: '', requestHash: undefined, with: () => assert.fail() };
  assert.throws(() => results.question(copy, [], 'p'), wrong(/a new AskedQuestion of the SDK/));
  assert.throws(() => inputs.answer(copy, [{}]), wrong(/the question that the function got/));
});

it('who lets an answer out says true, and nothing comes of it', () => {
  assert.equal(results.approved(true, [], 'p'), undefined);
  assert.throws(() => results.approved({}, [], 'p'), WrongShape);
});

describe('a response', () => {
  it('is a frozen copy, and read once', () => {
    for (const given of [
      { status: 200, data: { a: 1 }, text: '{"a":1}', request },
      { status: 200, data: [1] },
    ]) {
      const response = read(given);
      assert.deepEqual(response, given);
      assert.ok(Object.isFrozen(response) && response !== given);
      assert.equal(read(response), response);
    }
  });

  it('keeps its identity and its request, however long', () => {
    const given = { status: 200, data: 'x'.repeat(100_000), request };
    const response = read(given);
    assert.deepEqual(response, given);
    assert.equal(read(response), response);
  });

  it('names no request that could not have been sent', () => {
    const other = { ...request, url: 'http://other/' };
    assert.deepEqual(read({ status: 200, data: 1, text: '1', request: other }), {
      ...{ status: 200, data: 1, text: '1' },
      request: other,
    });
    const odd = { status: 200, data: 1, request: { ...request, url: 'file:///' } };
    assert.throws(() => read(odd), wrong(/^returned a response whose request\.url must be an absolute http/));
    for (const value of [{ data: 1 }, { status: 200 }, { status: 200, data: 1, text: 1 }, null])
      assert.throws(() => read(value), WrongShape);
  });
});
