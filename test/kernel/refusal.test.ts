/** Whatever is thrown as a refusal and is none breaks nothing. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asRefusal, Refusal } from '../../kernel/refusal.ts';

describe('what is thrown as a refusal and is none', () => {
  const brand = { [Symbol.for('signed-data-proxy.refusal')]: true };
  const cases: readonly (readonly [string, unknown, string])[] = [
    ...[200, 399, 600].map(
      (status) =>
        [
          `status ${status}`,
          Object.assign(new Refusal(418, 't'), { status }),
          `t (thrown as a refusal, and none: a refusal with status ${status})`,
        ] as const,
    ),
    ['no status', { ...brand, message: 'm' }, 'm (thrown as a refusal, and none: a refusal with status undefined)'],
    [
      'a body in JSON that is no object',
      { ...brand, status: 418, message: 'm', body: [] },
      'm (thrown as a refusal, and none: is no JSON object)',
    ],
  ];
  const cannotBeShown = 'an error that cannot be shown';
  const raise = (fault: unknown) => () => {
    throw fault;
  };
  for (const [name, fault] of [
    ['an error that cannot be read', new Proxy(new Error(), { get: raise(1) })],
    ['one without a prototype that can be looked at', new Proxy({}, { getPrototypeOf: raise(1) })],
  ] as const) {
    it(`${name}, thrown by what is read of a refusal: a bare 500`, () => {
      const thrown = Object.defineProperty({ ...brand, message: 'm' }, 'status', { get: raise(fault) });
      const { status, reason } = asRefusal(thrown);
      assert.deepEqual([status, reason], [500, `m (thrown as a refusal, and none: ${cannotBeShown})`]);
    });
  }

  for (const [name, thrown, reason] of cases) {
    it(`${name}: a bare 500, and the log says what is wrong`, () => {
      const refusal = asRefusal(thrown);
      assert.deepEqual([refusal.status, refusal.message, refusal.reason], [500, 'Internal server error', reason]);
    });
  }
});
