/** No response has verifyResponse throw, and none that was changed or not signed is accepted. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type VerifyOptions, verifyResponse } from '../../verify/index.ts';
import { node, OTHER, refusal, throwing, answer as withReceipt } from './setup.ts';

const { receipt: _receipt, ...answer } = withReceipt;

describe('verifyResponse never throws', () => {
  it('whatever it is given', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const { data: _, ...rest } = answer;
    const inside = { ...rest, rawData: { a: proxy } };
    for (const response of [proxy, throwing, { ...answer, node: throwing }, inside, { ...rest, rawData: throwing }]) {
      assert.equal(refusal(response, { node: null })[0], 'malformed');
    }
    const unreadable: VerifyOptions = { ...answer, ...Object.create(null), node: null };
    assert.equal(refusal(answer, unreadable)[0], 'options');
    assert.equal(Reflect.apply(verifyResponse, undefined, [answer, proxy]).ok, false);
    assert.equal(Reflect.apply(verifyResponse, undefined, []).ok, false);
  });

  it('nor accepts anything that was not signed', () => {
    const part = fc.oneof(fc.anything(), fc.constantFrom(...Object.values(answer)));
    const keys = fc.constantFrom('node', 'endpointId', 'timestamp', 'data', 'rawData', 'signature');
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.dictionary(keys, part)), (response) => {
        assert.equal(verifyResponse(response, { node: OTHER }).ok, false);
      }),
      { numRuns: 2000 },
    );
  });

  it('nor accepts an answer of which any one character was changed', () => {
    const text = JSON.stringify(answer);
    for (let at = 0; at < text.length; at++) {
      const other = text.charAt(at) === '1' ? '2' : '1';
      const changed = text.slice(0, at) + other + text.slice(at + 1);
      let response: unknown;
      try {
        response = JSON.parse(changed);
      } catch {
        continue;
      }
      assert.equal(verifyResponse(response, { node }).ok, false, changed);
    }
  });
});
