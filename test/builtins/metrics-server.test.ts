/** Clients of the metrics are few, and none makes the service write more than it reads. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { it, type TestContext } from 'node:test';
import { Recorder } from '../../builtins/metrics/recorder.ts';
import { MetricsServer } from '../../builtins/metrics/server.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { eventually } from '../support/wait.ts';

const nothing = () => undefined;

/** A server of metrics, and where it is by its log. */
function serverFor(t: TestContext, warn: Log['warn'] = nothing) {
  const told = { url: '' };
  const info = (message: string) => {
    told.url = message.replace('metrics on ', '');
  };
  const server = new MetricsServer({ host: '127.0.0.1', port: 0 }, { debug: nothing, info, warn, error: nothing });
  t.after(() => server.close());
  return { server, told };
}

it('a client of the metrics that pipelines and reads nothing gets one page made at a time', async (t) => {
  const { server, told } = serverFor(t);
  const pages: string[] = [];
  const page = (name: string, body: string) => async () => {
    pages.push(name);
    return { status: 200, body };
  };
  // More than the system's buffers take.
  await server.start({ '/metrics': page('metrics', 'x'.repeat(16 * 1024 * 1024)), '/health': page('health', '{}') });
  const client = connect(Number(new URL(told.url).port), '127.0.0.1').pause();
  client.on('error', nothing);
  t.after(() => client.destroy());
  client.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(500));
  await eventually(() => pages.length > 0);
  for (let i = 0; i < 10; i++) assert.equal((await fetch(told.url.replace('metrics', 'health'))).status, 200);
  assert.deepEqual(pages, ['metrics', ...Array.from({ length: 10 }, () => 'health')]);
});

it('more clients of the metrics than it holds are refused, with one line in the log', async (t) => {
  const warnings: unknown[] = [];
  const { server, told } = serverFor(t, (...words) => void warnings.push(words));
  await server.start({});
  let closed = 0;
  for (let i = 0; i < 35; i++) {
    const client = connect(Number(new URL(told.url).port), '127.0.0.1').on('error', nothing);
    client.on('close', () => {
      closed += 1;
    });
    t.after(() => client.destroy());
  }
  await eventually(() => closed >= 3);
  assert.deepEqual(warnings, [['connections to the metrics refused', { perAddress: 32 }]]);
});

it('what a worker cannot read is left out of the sum over all of them', async () => {
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const offered: (() => Promise<unknown>)[] = [];
  const offer = (_: string, values: () => Promise<unknown>) => void offered.push(values, values);
  const workers = { count: 2, offer, gather: () => Promise.all(offered.map((values) => values())) };
  const recorder = new Recorder({ log, version: '1', workers });
  recorder.gauge({ name: 'sound', help: 'read', series: 1 }, () => 3);
  recorder.gauge({ name: 'broken', help: 'not read', series: 1 }, () => assert.fail('no'));
  const text = await recorder.text();
  assert.match(text, /^signed_data_proxy_sound 6$/m);
  assert.doesNotMatch(text, /nan/i);
});
