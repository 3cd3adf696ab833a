/** The harness runs stages that go around others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AskedQuestion, definePlugin, Refusal, type SignedResponse } from '../../plugins-sdk/index.ts';
import { testEndpoint, testPlugin } from '../../service/testing.ts';

describe('the onions in the harness', () => {
  const retry = definePlugin({
    name: 'p',
    setup: () => ({
      hooks: {
        callApi: (request, _exchange, { next }) =>
          next().catch((error: Refusal) => {
            if (error.upstreamStatus !== 503) throw error;
            return next({ ...request, headers: { 'x-again': '1' } });
          }),
      },
    }),
  });

  it('callApi gets a request, and asks what the test has put inside', async () => {
    const harness = await testPlugin(retry);
    const asked: unknown[] = [];
    const outcome = await harness.run('callApi', {
      outgoing: { url: 'https://api.example.com/eth' },
      next: (request) => {
        asked.push([request.method, request.url, request.headers]);
        if (asked.length === 1) throw new Refusal(502, 'API call failed', { upstreamStatus: 503 });
        return { data: { price: 1 }, status: 200 };
      },
    });
    assert.ok('value' in outcome);
    assert.deepEqual([outcome.value.data, outcome.value.status], [{ price: 1 }, 200]);
    assert.deepEqual(asked, [
      ['GET', 'https://api.example.com/eth', {}],
      ['GET', 'https://api.example.com/eth', { 'x-again': '1' }],
    ]);
  });

  it('what is inside refuses as it does in the service, and is null without a word of the test', async () => {
    const harness = await testPlugin(retry);
    const refused = await harness.run('callApi', {
      next: () => {
        throw new Refusal(504, 'API call timed out');
      },
    });
    assert.deepEqual(refused, { refused: { status: 504, message: 'API call timed out' } });
    const answered = await harness.run('callApi');
    assert.ok('value' in answered);
    assert.deepEqual([answered.value.data, answered.value.status], [null, 200]);
    assert.deepEqual(await (await testPlugin({ name: 'q', hooks: {} })).run('callApi'), { passed: true });
  });

  it('answer gets a question, and what it keeps is checked as in the service', async () => {
    const kept = new Map<string, SignedResponse>();
    const harness = await testPlugin(
      definePlugin({
        name: 'p',
        setup: () => ({
          hooks: {
            answer: ({ key }, _exchange, { share }) =>
              kept.get(key) ??
              share(key, async ({ next }) => {
                const answer = await next();
                kept.set(key, answer);
                return answer;
              }),
          },
        }),
      }),
    );
    let made = 0;
    const request = { method: 'GET', url: 'https://api.example.com/', headers: {}, body: undefined };
    const parts = { parameters: { symbol: 'ETH' }, reserved: {}, request, requestHash: undefined };
    const question = new AskedQuestion({ ...parts, key: () => 'a', requestFor: () => request });
    const first = await harness.run('answer', { question });
    const second = await harness.run('answer', { question, next: () => assert.fail(`made ${++made}`) });
    assert.ok('value' in first && 'value' in second);
    assert.equal(second.value, first.value);
    assert.equal(JSON.parse(first.value.json).endpointId, testEndpoint().id);
    const other = testEndpoint({ id: `0x${'22'.repeat(32)}` });
    assert.deepEqual(await harness.run('answer', { question, endpoint: other }), {
      refused: { status: 500, message: 'Internal server error' },
    });
    assert.match(
      String(harness.complaints[0]?.message),
      /^plugin "p": .*returned an answer of another endpoint: 0x1111/,
    );
  });
});
