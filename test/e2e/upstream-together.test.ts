/** An upstream of which everything fails in turn: mutual TLS, OAuth 2.0, retries, mirrors, a breaker and stale answers in one API. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { it, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { certificatesOf, withoutOpenssl } from '../support/certificates.ts';
import { hostOf, textsOf } from '../support/https.ts';
import { scrape } from '../support/metrics.ts';
import { oneApi, serviceFor } from '../support/service.ts';

const MAX_AGE = 1;

const json =
  (value: unknown, status = 200): RequestListener =>
  (_, res) =>
    // A connection that is lost while it is used again has its GET sent twice, which is no retry.
    void res.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' }).end(JSON.stringify(value));
const hang: RequestListener = () => undefined;
const reset: RequestListener = (req) => void req.socket.destroy();

/** Hosts that want a certificate of the client, and answer as `says` tells; the calls of each are counted. */
async function startHosts<N extends string>(t: TestContext, says: Record<N, RequestListener>) {
  const tls = await textsOf(await certificatesOf(t, 1, ['IP:127.0.0.1']));
  const calls: Record<string, string[]> = {};
  const start = async (name: N) => {
    calls[name] = [];
    const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: true }, (req, res) => {
      calls[name]?.push(req.headers.authorization ?? '');
      says[name](req, res);
    });
    return [name, `https://${await hostOf(t, server)}`] as const;
  };
  const urls = Object.fromEntries(await Promise.all((Object.keys(says) as N[]).map(start)));
  return { tls, url: (name: N) => urls[name] ?? '', count: (name: N) => calls[name]?.splice(0) ?? [] };
}

it('what the config does not name is in nobody’s way, and what it names has its place', async (t) => {
  const taps = async (api: Readonly<Record<string, unknown>>) => {
    const config = { version: '1.0', ...oneApi('http://127.0.0.1:1', { e: {} }, { api }) };
    const cwd = await folderWith(t, { 'c.yaml': stringify(config) });
    const { stdout } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    const [, listed = ''] = /^callApi .*\n((?: {2}.*\n)*)/m.exec(stdout) ?? [];
    return [...listed.matchAll(/^ +\d+\. (\S+)/gm)].flatMap(([, name = '']) => (name === 'tracing' ? [] : name));
  };
  assert.deepEqual(await taps({}), ['call-api']);
  const oauth2 = { tokenUrl: 'http://127.0.0.1:2/token', clientId: 'me', clientSecret: 's' };
  const all = { retry: { attempts: 2 }, mirrors: ['http://127.0.0.1:3'], breaker: true, oauth2 };
  const inOrder = ['upstream-retry', 'upstream-oauth2', 'upstream-mirrors', 'upstream-breaker', 'call-api'];
  assert.deepEqual(await taps(all), inOrder);
});

const token = (text: string) => json({ access_token: text, token_type: 'Bearer', expires_in: 3600 });

/** A service with all of it, whose hosts and logins all fail until `says` tells otherwise. */
async function startAll(t: TestContext) {
  const says = { login: json({}, 500), own: json({}, 500), mirror: json(7) };
  const { tls, url, count } = await startHosts(t, says);
  const oauth2 = { tokenUrl: `${url('login')}/token`, clientId: 'me', clientSecret: 's' };
  const upkeep = { retry: { attempts: 2 }, mirrors: [url('mirror')], breaker: { failures: 2, openFor: '1m' } };
  const endpoints = { e: { cache: { maxAge: MAX_AGE, staleIfError: '10m' } }, fresh: {} };
  const api = { ...upkeep, tls, oauth2, timeout: 10_000 };
  const service = await serviceFor(t, oneApi(url('own'), endpoints, { api, settings: { metrics: { port: 0 } } }));
  const ask = async (name = 'e') => {
    const response = await service.post(`api/${name}`);
    const { rawData, error } = JSON.parse(await response.text());
    const isStale = response.headers.get('cache-status')?.includes('stale-if-error');
    return [response.status, ...(isStale ? ['stale'] : []), rawData ?? error];
  };
  const asked = () => [count('login').length, count('own'), count('mirror')];
  return { says, service, ask, asked };
}

it('all of them together', { skip: withoutOpenssl }, async (t) => {
  const { says, service, ask, asked } = await startAll(t);

  // No token: each attempt asks for one, and no host hears of it.
  assert.deepEqual(await ask(), [502, 'API call failed']);
  assert.deepEqual(asked(), [2, [], []]);

  // A token, but the host fails: its mirror answers, with the same token. The host rests, so that the mirror is asked first.
  says.login = token('t1');
  assert.deepEqual(await ask(), [200, 7]);
  assert.deepEqual(asked(), [1, ['Bearer t1'], ['Bearer t1']]);
  assert.deepEqual(await ask('fresh'), [200, 7]);
  assert.deepEqual(asked(), [0, [], ['Bearer t1']]);

  // Both fail. That of the host is its second failure, so that the next attempt spares it. What was kept stands in.
  says.own = reset;
  says.mirror = hang;
  assert.deepEqual(await ask(), [200, 'stale', 7]);
  assert.deepEqual(asked(), [0, ['Bearer t1'], Array(2).fill('Bearer t1')]);

  // The breaker of the host is open, and that of the mirror counts its second failure.
  says.mirror = json({}, 503);
  assert.deepEqual(await ask('fresh'), [502, 'API call failed']);
  assert.deepEqual(asked(), [0, [], ['Bearer t1']]);
  assert.deepEqual(await ask('fresh'), [503, 'Upstream unavailable']);
  assert.deepEqual(await ask(), [200, 'stale', 7]);
  assert.deepEqual(asked(), [0, [], []]);

  const found = await scrape(service);
  assert.deepEqual(found.table('upstream_tokens_total'), { 'api fetched': 1, 'api failed': 2 });
  assert.deepEqual(found.table('upstream_breakers_open'), { '': 2 });
  assert.equal(found.table('cache_lookups_total').stale, 2);
});
