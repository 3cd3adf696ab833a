/** slack-alerts tells a channel of failures, and not too often. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Check } from 'typebox/value';
import slackAlerts, { configSchema } from '../../../examples/plugins/slack-alerts.ts';
import { testEndpoint, testPlugin } from '../../../service/testing.ts';
import { complaintsOf } from '../../support/complaints.ts';
import { suite } from '../../support/lifetime.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

const MINUTE = 60_000;
const endpoint = testEndpoint({ api: 'prices', name: 'latest' });

describe('slack-alerts', async () => {
  const slack = await upstreamFor(suite, {
    '/hook': faults.text('ok', { type: 'text/html' }),
    '/gone': faults.empty(410),
    '/hang': faults.hang(),
    '/moved': faults.redirect('/hook'),
  });

  beforeEach(() => void slack.requests.splice(0));

  const texts = () => slack.requests.map(({ body }) => JSON.parse(body).text);

  async function setUp(config: { minStatus?: number; interval?: number } = {}, path = '/hook', budget = 10_000) {
    const clock = { now: 0 };
    const plugin = slackAlerts({ webhookUrl: `${slack.url}${path}`, ...config }, () => clock.now);
    return { clock, harness: await testPlugin(plugin, { budget }) };
  }

  it('posts what failed and where', async () => {
    const { harness } = await setUp();
    const request = harness.request({ endpoint, parameters: { key: 's3cret' }, headers: { cookie: 's3cret' } });
    await request.run('onError', { status: 502, message: 'API call failed', stage: 'callApi' });
    const [{ method, path, headers, body } = {}] = slack.requests;
    assert.deepEqual([method, path, headers?.['content-type']], ['POST', '/hook', 'application/json']);
    const text = `prices/latest: 502 API call failed (callApi, request ${request.requestId})`;
    assert.equal(body, JSON.stringify({ text }));
    assert.deepEqual(harness.complaints, []);
  });

  it('posts statuses from 500 on, or from the one that is configured', async () => {
    const posted = async (minStatus: number | undefined, status: number) => {
      const before = slack.requests.length;
      const { harness } = await setUp(minStatus === undefined ? {} : { minStatus });
      await harness.run('onError', { status });
      return slack.requests.length - before;
    };
    assert.deepEqual(
      [await posted(undefined, 499), await posted(undefined, 500), await posted(undefined, 599)],
      [0, 1, 1],
    );
    assert.deepEqual([await posted(403, 402), await posted(403, 403), await posted(502, 500)], [0, 1, 0]);
  });

  it('makes one message a minute of a flood, and counts', async () => {
    const { harness, clock } = await setUp();
    await Promise.all(Array.from({ length: 500 }, () => harness.run('onError', { endpoint })));
    assert.equal(slack.requests.length, 1);
    clock.now = MINUTE - 1;
    await harness.run('onError', { endpoint });
    assert.equal(slack.requests.length, 1);
    clock.now = MINUTE;
    const last = harness.request({ endpoint });
    await last.run('onError', { status: 500, message: 'Internal server error', stage: 'sign' });
    clock.now = 3 * MINUTE;
    await harness.run('onError', { endpoint });
    const [, second, third] = texts();
    assert.equal(
      second,
      `prices/latest: 500 Internal server error (sign, request ${last.requestId})\n` +
        '501 failures since the last message, this one included',
    );
    assert.match(third, /^prices\/latest: 502 API call failed \(callApi, request 0x[0-9a-f]{64}\)$/);
    assert.equal(slack.requests.length, 3);
  });

  it('does not count what is below the minimum', async () => {
    const { harness, clock } = await setUp();
    await harness.run('onError', { status: 503 });
    await harness.run('onError', { status: 400 });
    clock.now = MINUTE;
    await harness.run('onError', { status: 503 });
    const lines = texts().map((text) => text.split('\n').length);
    assert.deepEqual(lines, [1, 1]);
  });

  it('shows nothing that a client sent, and no markup', async () => {
    const { harness, clock } = await setUp({ minStatus: 404 });
    const unknown = harness.request({ unknownEndpoint: '<!channel>', parameters: { a: 's3cret' } });
    await unknown.run('onError', { status: 404, message: 'Endpoint not found', stage: 'resolve' });
    clock.now = MINUTE;
    const marked = harness.request({ endpoint: testEndpoint({ api: 'a&b', name: '<c>' }) });
    await marked.run('onError', { status: 500, message: '<!here> &amp;' });
    assert.deepEqual(texts(), [
      `unknown endpoint: 404 Endpoint not found (resolve, request ${unknown.requestId})`,
      `a&amp;b/&lt;c&gt;: 500 &lt;!here&gt; &amp;amp; (callApi, request ${marked.requestId})`,
    ]);
  });

  it('complains of a webhook that fails, without its URL, and tells the count later', async () => {
    for (const [path, complaint] of [
      ['/gone', 'Error: the webhook answered 410'],
      ['/moved', 'Error: the webhook cannot be reached'],
    ] as const) {
      const { harness, clock } = await setUp({}, `${path}?token=s3cret`);
      await harness.run('onError');
      await harness.run('onError');
      clock.now = MINUTE;
      await harness.run('onError');
      assert.deepEqual(complaintsOf(harness), [
        ['onError', complaint],
        ['onError', complaint],
      ]);
      assert.doesNotMatch(JSON.stringify(harness.complaints), /s3cret/);
      assert.match(texts().at(-1), /\n3 failures since the last message, this one included$/);
    }
    const paths = slack.requests.map(({ path }) => path);
    assert.deepEqual(paths, ['/gone?token=s3cret', '/gone?token=s3cret', '/moved?token=s3cret', '/moved?token=s3cret']);
  });

  it('gives up a webhook that hangs when its budget ends', async () => {
    const { harness } = await setUp({}, '/hang', 500);
    await harness.run('onError');
    await slack.untilAborted('/hang');
    assert.deepEqual(complaintsOf(harness), [['onError', 'its 500 ms were spent in the call']]);
  });

  it('refuses a URL that it could not post to, without showing it', () => {
    for (const webhookUrl of ['', 'hooks/s3cret', 'file:///s3cret', 'https://u:s3cret@127.0.0.1/']) {
      const message = 'webhookUrl must be an http or https URL without user name and password';
      assert.throws(() => slackAlerts({ webhookUrl }), { message });
    }
  });

  it('describes its config', () => {
    const webhookUrl = 'https://hooks.slack.com/services/a';
    assert.equal(Check(configSchema, { webhookUrl }), true);
    assert.equal(Check(configSchema, { webhookUrl, minStatus: 400, interval: 1 }), true);
    for (const wrong of [{}, { webhookUrl: 1 }, { webhookUrl, minStatus: 399 }, { webhookUrl, minStatus: 600 }])
      assert.equal(Check(configSchema, wrong), false, JSON.stringify(wrong));
    assert.equal(Check(configSchema, { webhookUrl, interval: 0 }), false);
    assert.equal(Check(configSchema, { webhookUrl, channel: '#a' }), false);
  });
});
