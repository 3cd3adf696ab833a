/** Trouble of upstreams is found by metrics, and alerts fire. */

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { assertFires, assertFiring, withoutPromtool } from '../support/alerts.ts';
import { certificatesFor, withoutOpenssl } from '../support/certificates.ts';
import { inTurn } from '../support/in-turn.ts';
import { foundInLog } from '../support/incidents.ts';
import { Scrape, scrape } from '../support/metrics.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

it('an upstream that fails: who was asked how often, what is asked no more, and which answers are old', async (t) => {
  const upstream = await upstreamFor(t, {
    '/e': inTurn(faults.serverError(), faults.json(7), faults.serverError()),
  });
  const api = { retry: { attempts: 2 }, breaker: { failures: 2, openFor: '1m' } };
  const endpoints = [
    { name: 'e', path: '/e', cache: { maxAge: '1ms', staleIfError: '10m' } },
    { name: 'other', path: '/e?other' },
  ];
  const apis = [{ name: 'api', url: upstream.url, auth: { type: 'free' }, ...api, endpoints }];
  const { post, written } = await serviceFor(t, { apis }, { env: { LOG_FORMAT: 'json' } });
  const ask = async (name: string) => {
    const { headers, status } = await post(`api/${name}`);
    await eventually(() => written().includes(`"requestId":"${headers.get('x-request-id')}"`));
    return status;
  };
  assert.deepEqual([await ask('e'), await ask('e'), await ask('e'), await ask('other')], [200, 200, 200, 503]);

  const found = (symptom: string) => foundInLog(symptom, written());
  assert.deepEqual(await found('Clients get `503 Upstream unavailable`'), [
    { host: new URL(upstream.url).host, failures: 2 },
  ]);
  assert.deepEqual(await found('An upstream complains of too many calls, or answers are late'), [
    { endpoint: 'api/e', attempts: 2, status: 200 },
    { endpoint: 'api/e', attempts: 2, status: 500 },
  ]);
  assert.equal((await found('An answer is older than its `maxAge`')).length, 2);
});

const ALERTS = ['UpstreamBreakerOpen', 'UpstreamTokensFail', 'UpstreamCertificateEnds'];

describe('what upstreams want is found by metrics, and their alerts fire', { skip: withoutPromtool }, () => {
  it('a token endpoint that refuses, and a host that is asked no more', async (t) => {
    const login = await upstreamFor(t, { '*': faults.json({ error: 'invalid_client' }, 401) });
    const upstream = await upstreamFor(t, { '*': faults.serverError() });
    const oauth2 = { tokenUrl: `${login.url}/token`, clientId: 'me', clientSecret: 's' };
    const own = { url: upstream.url, auth: { type: 'free' } };
    const apis = [
      { name: 'guarded', ...own, oauth2, endpoints: [{ name: 'e', path: '/e' }] },
      { name: 'down', ...own, breaker: { failures: 1 }, endpoints: [{ name: 'f', path: '/f' }] },
    ];
    const env = { LOG_FORMAT: 'json' };
    const service = await serviceFor(t, { settings: { metrics: { port: 0 } }, apis }, { env });
    const before = { scrape: await scrape(service), minutes: 5 };
    assert.deepEqual([(await service.post('guarded/e')).status, (await service.post('down/f')).status], [502, 502]);
    const seen = [before, { scrape: await scrape(service), minutes: 7 }];
    await assertFires(t, seen.with(1, { ...seen[1], minutes: 4 } as (typeof seen)[1]), ALERTS, ['UpstreamTokensFail']);
    await assertFiring(t, seen, ALERTS, ['UpstreamBreakerOpen']);
    assert.deepEqual(await foundInLog('`UpstreamTokensFail` fires', service.written()), [
      { endpoint: 'guarded/e', reason: 'status_4xx', detail: 'oauth2: no token, status 401' },
    ]);
  });

  it('a certificate that ends tomorrow', { skip: withoutOpenssl }, async (t) => {
    const files = await certificatesFor(t, 'IP:127.0.0.1');
    const [cert, key] = await Promise.all([files.cert, files.key].map((file) => readFile(file, 'utf8')));
    const api = { tls: { cert, key } };
    const settings = { metrics: { port: 0 } };
    const service = await serviceFor(t, oneApi('https://127.0.0.1:1', { e: {} }, { api, settings }));
    const found = await scrape(service);
    const end = Date.parse(new X509Certificate(cert ?? '').validTo) / 1000;
    assert.deepEqual(found.table('upstream_certificate_ends_seconds'), { '': end });
    // Prometheus's tests begin in 1970.
    const soon = new Scrape(found.text.replaceAll(`${end}`, `${86_400}`));
    await assertFiring(t, [{ scrape: found, minutes: 8 }], ALERTS, []);
    await assertFiring(t, [{ scrape: soon, minutes: 8 }], ALERTS, ['UpstreamCertificateEnds']);
  });
});
