/** request-logger logs each request once. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Check } from 'typebox/value';
import requestLogger, { configSchema } from '../../../examples/plugins/request-logger.ts';
import { testEndpoint, testPlugin } from '../../../service/testing.ts';
import { complaintsOf } from '../../support/complaints.ts';

const endpoint = testEndpoint({ api: 'prices', name: 'latest' });

/** The plugin with a writer that keeps what it gets. */
async function setUp(config?: { errors?: boolean }) {
  const written: string[] = [];
  const harness = await testPlugin(requestLogger(config, (lines) => void written.push(lines)));
  return { written, harness };
}

describe('request-logger', () => {
  it('writes a line for an answer', async () => {
    const { written, harness } = await setUp();
    const request = harness.request({ endpoint, parameters: { a: 's3cret' } });
    await request.run('onResponseSent', { duration: 12.5 });
    assert.deepEqual(written, [
      `{"requestId":"${request.requestId}","endpoint":"prices/latest","status":200,"duration":12.5}`,
    ]);
  });

  it('writes a line for a failure, unless told not to', async () => {
    const { written, harness } = await setUp({});
    const request = harness.request({ endpoint });
    await request.run('onError', { status: 400, message: 'Missing required parameter: a', stage: 'validate' });
    assert.deepEqual(written, [
      `{"requestId":"${request.requestId}","endpoint":"prices/latest","status":400,"stage":"validate"}`,
    ]);
    const quiet = await setUp({ errors: false });
    await quiet.harness.run('onError');
    await quiet.harness.run('onResponseSent');
    const statuses = quiet.written.map((line) => JSON.parse(line).status);
    assert.deepEqual(statuses, [200]);
  });

  it('does not repeat the id of an unknown endpoint', async () => {
    const { written, harness } = await setUp();
    const request = harness.request({ unknownEndpoint: 'x\n{"requestId":"forged"}' });
    await request.run('onError', { status: 404, message: 'Endpoint not found', stage: 'resolve' });
    assert.deepEqual(written, [`{"requestId":"${request.requestId}","endpoint":null,"status":404,"stage":"resolve"}`]);
  });

  it('keeps one line one line, whatever the endpoint is called', async () => {
    const { written, harness } = await setUp();
    await harness.run('onResponseSent', { endpoint: testEndpoint({ api: 'a\nb', name: '"c"' }) });
    assert.equal(written[0]?.includes('\n'), false);
    assert.equal(JSON.parse(written[0] ?? '').endpoint, 'a\nb/"c"');
  });

  it('writes what belongs to one turn of the event loop at once, and is done when it is written', async () => {
    const { written, harness } = await setUp();
    const requests = Array.from({ length: 100 }, () => harness.request());
    await Promise.all(requests.map((request) => request.run('onResponseSent')));
    assert.equal(written.length, 1);
    const ids = written[0]?.split('\n').map((line) => JSON.parse(line).requestId);
    assert.deepEqual(
      ids,
      requests.map(({ requestId }) => requestId),
    );
    await harness.run('onResponseSent');
    assert.equal(written.length, 2);
  });

  it('writes to stdout by default', async (t) => {
    const log = t.mock.method(console, 'log', () => undefined);
    const harness = await testPlugin(requestLogger());
    const request = harness.request();
    await request.run('onResponseSent', { duration: 1 });
    const written = log.mock.calls.map((call) => call.arguments);
    assert.deepEqual(written, [
      [`{"requestId":"${request.requestId}","endpoint":"test-api/test-endpoint","status":200,"duration":1}`],
    ]);
  });

  it('complains when nothing can be written, and goes on', async () => {
    let broken = true;
    const written: string[] = [];
    const plugin = requestLogger({}, (lines) => {
      if (broken) throw new Error('no space left');
      written.push(lines);
    });
    const harness = await testPlugin(plugin);
    await harness.run('onResponseSent');
    assert.deepEqual(complaintsOf(harness), [['onResponseSent', 'Error: no space left']]);
    broken = false;
    await harness.run('onResponseSent');
    assert.equal(written.length, 1);
  });

  it('describes its config', () => {
    assert.equal(Check(configSchema, {}), true);
    assert.equal(Check(configSchema, { errors: false }), true);
    assert.equal(Check(configSchema, { errors: 'no' }), false);
    assert.equal(Check(configSchema, { file: 'a' }), false);
  });
});
