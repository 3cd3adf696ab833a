/** mode-jsonp answers as a script, with a callback that is checked. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runInNewContext } from 'node:vm';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { suite } from '../../support/lifetime.ts';
import { served } from '../../support/served.ts';
import { TEST_ADDRESS } from '../../support/service.ts';
import { faults } from '../../support/upstream.ts';

describe('mode-jsonp', async () => {
  const endpoints = { e: { mode: 'jsonp' }, broken: { mode: 'jsonp' } };
  const { upstream, service } = await served(suite, endpoints, {
    answers: { '/e': faults.json('\u2028</script>'), '/broken': faults.serverError() },
    settings: { plugins: [example('mode-jsonp')] },
  });

  it('answers with a script that hands the signed answer to the function', async () => {
    for (const callback of ['show', 'app.onPrice', '$_1']) {
      const response = await service.post('api/e', { callback });
      const script = await response.text();
      assert.deepEqual(
        [response.status, response.headers.get('content-type'), response.headers.get('x-content-type-options')],
        [200, 'text/javascript; charset=utf-8', 'nosniff'],
      );
      assert.ok(script.startsWith(`/**/${callback}({"node":`), script);
      const shown: Record<string, string>[] = [];
      const show = (answer: Record<string, string>) => void shown.push(answer);
      runInNewContext(script, { show, app: { onPrice: show }, $_1: show });
      const seen = shown.map(({ node, rawData }) => [node, rawData]);
      assert.deepEqual(seen, [[TEST_ADDRESS, '\u2028</script>']]);
    }
  });

  it('refuses what is no name of a function, before the upstream is asked', async () => {
    const before = upstream.requests.length;
    for (const callback of [undefined, 1, '', 'a b', 'alert(1)', 'a.', '.a', '1a', 'a\n', 'a[0]', 'x'.repeat(101)])
      await assertRefused(await service.post('api/e', { callback }), 400, 'Invalid callback');
    assert.equal(upstream.requests.length, before);
  });

  it('errors stay plain HTTP', async () => {
    await assertRefused(await service.post('api/broken', { callback: 'f' }), 502, 'API call failed');
  });
});
