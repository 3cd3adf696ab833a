/** heartbeat pings a monitor while answers go out, once per interval. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Check } from 'typebox/value';
import heartbeat, { configSchema } from '../../../examples/plugins/heartbeat.ts';
import { testPlugin } from '../../../service/testing.ts';
import { complaintsOf } from '../../support/complaints.ts';
import { suite } from '../../support/lifetime.ts';
import { faults, startUpstream, upstreamFor } from '../../support/upstream.ts';

const HOUR = 3_600_000;

describe('heartbeat', async () => {
  const monitor = await upstreamFor(suite, { '/hang': faults.hang(), '/busy': faults.empty(503) });
  monitor.text('/ping', 'OK');

  const pings = (path: string) => monitor.requests.filter((request) => request.path === path).length;

  it('gets the URL after an answer was sent', async () => {
    const harness = await testPlugin(heartbeat({ url: `${monitor.url}/ping?id=1` }));
    await harness.run('onResponseSent');
    const [{ method, path, body } = {}] = monitor.requests;
    assert.deepEqual({ method, path, body }, { method: 'GET', path: '/ping?id=1', body: '' });
    assert.deepEqual(harness.complaints, []);
  });

  it('does nothing before that', async () => {
    const harness = await testPlugin(heartbeat({ url: `${monitor.url}/early` }));
    await harness.run('onHttpRequest');
    await harness.run('onError');
    assert.equal(pings('/early'), 0);
  });

  it('pings once per interval', async () => {
    let now = 0;
    const harness = await testPlugin(heartbeat({ url: `${monitor.url}/ping`, interval: HOUR }, () => now));
    const counts: number[] = [];
    for (now of [0, 1, HOUR - 1, HOUR, HOUR + 1, 2 * HOUR - 1, 5 * HOUR]) {
      await harness.run('onResponseSent');
      counts.push(pings('/ping'));
    }
    assert.deepEqual(counts, [1, 1, 1, 2, 2, 2, 3]);
  });

  it('pings once when answers go out at the same time, a minute being the default', async () => {
    let now = 0;
    const harness = await testPlugin(heartbeat({ url: `${monitor.url}/crowd` }, () => now));
    await Promise.all(Array.from({ length: 20 }, () => harness.run('onResponseSent')));
    now = 59_999;
    await harness.run('onResponseSent');
    assert.equal(pings('/crowd'), 1);
    now = 60_000;
    await harness.run('onResponseSent');
    assert.equal(pings('/crowd'), 2);
  });

  it('does not care how the monitor answers', async () => {
    const refusing = await startUpstream();
    await refusing.close();
    for (const url of [`${monitor.url}/busy`, `${monitor.url}/missing`, `${refusing.url}/ping`]) {
      const harness = await testPlugin(heartbeat({ url }));
      await harness.run('onResponseSent');
      assert.deepEqual(harness.complaints, []);
    }
    assert.deepEqual([pings('/busy'), pings('/missing')], [1, 1]);
  });

  it('gives up a monitor that hangs when its budget ends', async () => {
    const harness = await testPlugin(heartbeat({ url: `${monitor.url}/hang` }), { budget: 500 });
    await harness.run('onResponseSent');
    await monitor.untilAborted('/hang');
    assert.deepEqual(complaintsOf(harness), [['onResponseSent', 'its 500 ms were spent in the call']]);
  });

  it('refuses a URL that it could not ping, without showing it', () => {
    for (const url of ['', 'monitor', 'ftp://127.0.0.1/s3cret', 'http://user:s3cret@127.0.0.1/', 'https://user@h/']) {
      const message = 'url must be an http or https URL without user name and password';
      assert.throws(() => heartbeat({ url }), { message });
    }
  });

  it('describes its config', () => {
    assert.equal(Check(configSchema, { url: 'https://h/' }), true);
    assert.equal(Check(configSchema, { url: 'https://h/', interval: 1 }), true);
    for (const wrong of [{}, { url: 1 }, { url: 'a', interval: 0 }, { url: 'a', interval: 1.5 }, { url: 'a', x: 1 }])
      assert.equal(Check(configSchema, wrong), false, JSON.stringify(wrong));
  });
});
