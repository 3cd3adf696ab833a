import assert from 'node:assert/strict';
import { it } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, launchCli } from '../cli/run.ts';
import { KEY } from '../cli/service-config.ts';
import { until, urlOf } from '../cli/started.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { inTurn } from '../support/in-turn.ts';
import { foundInLog } from '../support/incidents.ts';
import { faults, startUpstream } from '../support/upstream.ts';

it('an upstream that fails: who was asked how often, what is asked no more, and which answers are old', async (t) => {
  const upstream = await startUpstream({
    '/e': inTurn(faults.serverError(), faults.json(7), faults.serverError()),
  });
  t.after(() => upstream.close());
  const api = { retry: { attempts: 2 }, breaker: { failures: 2, openFor: '1m' } };
  const endpoints = [
    { name: 'e', path: '/e', cache: { maxAge: '1ms', staleIfError: '10m' } },
    { name: 'other', path: '/e?other' },
  ];
  const apis = [{ name: 'api', url: upstream.url, auth: { type: 'free' }, ...api, endpoints }];
  const cwd = await folderWith(t, { 'c.yaml': stringify({ version: '1.0', server: { port: 0 }, apis }) });
  const running = launchCli(t, ['start', '-c', 'c.yaml'], {
    cwd,
    env: { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json' },
  });
  let log = '';
  running.child.stdout?.on('data', (text: string) => (log += text));
  const url = await urlOf(running);
  const ask = async (name: string) => {
    const [, id] = await running.output(new RegExp(`"api/${name} (0x[0-9a-f]{64})"`));
    const response = await fetch(`${url}/endpoints/${id}`, { method: 'POST', headers: JSON_HEADERS, body: '{}' });
    await until(() => log.includes(`"requestId":"${response.headers.get('x-request-id')}"`));
    return response.status;
  };
  assert.deepEqual([await ask('e'), await ask('e'), await ask('e'), await ask('other')], [200, 200, 200, 503]);

  const found = (symptom: string) => foundInLog(symptom, log);
  assert.deepEqual(await found('Clients get `503 Upstream unavailable`'), [
    { host: new URL(upstream.url).host, failures: 2 },
  ]);
  assert.deepEqual(await found('An upstream complains of too many calls, or answers are late'), [
    { endpoint: 'api/e', attempts: 2, status: 200 },
    { endpoint: 'api/e', attempts: 2, status: 500 },
  ]);
  assert.equal((await found('An answer is older than its `maxAge`')).length, 2);
});
