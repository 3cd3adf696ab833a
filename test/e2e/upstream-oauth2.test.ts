/** `apis[].oauth2` calls the upstream with a token that it gets by client credentials (RFC 6749, section 4.4). */
import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { assertRefused } from '../support/http.ts';
import { inTurn } from '../support/in-turn.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { scrape } from '../support/metrics.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { faults, type Handler, startUpstream, upstreamFor } from '../support/upstream.ts';

const ID = 'me:too';
const SECRET = 's3cret & more';
const CLIENT = { clientId: ID, clientSecret: SECRET };
/** What each request for a token says. */
const ASKED = { grant_type: 'client_credentials', scope: 'prices more' };

const token = (text: string, seconds?: number) =>
  faults.json({ access_token: text, token_type: 'Bearer', ...(seconds !== undefined && { expires_in: seconds }) });
/** What the log says of each call that failed. */
const reasons = ({ logs }: RunningService) =>
  logs.flatMap(({ message, fields }) => (message === 'API call failed' ? [fields.detail] : []));

describe('oauth2', async () => {
  let service: RunningService | undefined;

  const [upstream, login] = [await startUpstream(), await startUpstream()];

  /** Without a token that was fetched before. */
  const start = async (api: object = {}, settings: object = {}, rest: object = {}, files = {}) => {
    await service?.stop();
    service = undefined;
    for (const each of [upstream, login]) each.requests.splice(0);
    const oauth2 = { ...CLIENT, tokenUrl: `${login.url}/token`, scope: 'prices more', ...settings };
    const endpoints = { e: { parameters: [{ name: 'q' }] } };
    const config = oneApi(upstream.url, endpoints, { api: { oauth2, timeout: 1500, ...api }, ...rest });
    service = await startTestService(config, { files });
  };
  beforeEach(() => upstream.on('*', faults.json(7)));
  after(() => stopAll(service, upstream, login));

  const tokens = (...handlers: Handler[]) => login.on('/token', inTurn(...handlers));
  const post = () => service?.post('api/e') ?? assert.fail('there is no service');
  const ask = async () => (await post()).status;
  const bearers = () => upstream.requests.map(({ headers }) => headers.authorization);
  /** Takes only calls with this token. */
  const taking =
    (good: string): Handler =>
    (req, ...rest) =>
      (req.headers.authorization === `Bearer ${good}` ? faults.json(7) : faults.empty(401))(req, ...rest);

  it('asks for one token for all who wait for it, and for those who come later', async () => {
    await start();
    tokens(token('t1', 3600), token('t2'));
    assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [200, 200, 200]);
    assert.equal(await ask(), 200);
    assert.deepEqual(bearers(), Array(4).fill('Bearer t1'));
    const [{ method, headers, body } = assert.fail('no token was asked for'), ...others] = login.requests;
    assert.deepEqual(others, []);
    assert.deepEqual([method, headers['content-type']], ['POST', 'application/x-www-form-urlencoded']);
    assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), ASKED);
    // RFC 6749, 2.3.1: both are form-encoded before they are joined.
    const [scheme, credentials = ''] = (headers.authorization ?? '').split(' ');
    assert.deepEqual([scheme, Buffer.from(credentials, 'base64').toString()], ['Basic', 'me%3Atoo:s3cret+%26+more']);
  });

  it('sends `parameters` beside its own, which cannot be replaced', async () => {
    const more = { audience: 'https://prices.example/ &x', resource: '' };
    await start({}, { parameters: { ...more, __proto__: undefined } });
    tokens(token('t1'));
    assert.equal(await ask(), 200);
    assert.deepEqual(Object.fromEntries(new URLSearchParams(login.requests[0]?.body)), { ...ASKED, ...more });
    assert.ok(!JSON.stringify(service?.logs).includes('prices.example/ &x'));
  });

  it('sends id and secret in the body where the config says so', async () => {
    await start({}, { clientAuth: 'post' });
    tokens(token('t1'));
    assert.equal(await ask(), 200);
    const [{ headers, body } = assert.fail('no token was asked for')] = login.requests;
    const { client_id, client_secret } = Object.fromEntries(new URLSearchParams(body));
    assert.deepEqual([headers.authorization, client_id, client_secret], [undefined, ID, SECRET]);
  });

  it('renews a token before it ends', async () => {
    await start();
    tokens(token('t1', 1), token('t2', 3600));
    assert.equal(await ask(), 200);
    await setTimeout(950);
    assert.equal(await ask(), 200);
    assert.deepEqual(bearers(), ['Bearer t1', 'Bearer t2']);
  });

  it('renews a token that the upstream refuses, and calls again once', async () => {
    await start();
    tokens(token('old', 3600), token('new', 3600), token('newer', 3600));
    upstream.on('*', faults.serverError());
    assert.equal(await ask(), 502);
    upstream.on('*', taking('new'));
    assert.equal(await ask(), 200);
    // What fails in another way says nothing of the token.
    assert.deepEqual(bearers(), ['Bearer old', 'Bearer old', 'Bearer new']);
    upstream.on('*', faults.empty(401));
    assert.equal(await ask(), 502);
    // A second refusal so soon is about what was asked: clients must not have tokens fetched at their will.
    assert.deepEqual(bearers().slice(3), ['Bearer new']);
  });

  it('is not asked for by every client where the token endpoint refuses: not for 5 s, or as long as Retry-After wants', async () => {
    await start({ retry: { attempts: 3 } });
    tokens(faults.json({ error: 'invalid_client' }, 401), token('t1'));
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 502, 502]);
    assert.equal(login.requests.length, 1);
    await start({ retry: { attempts: 3 } });
    tokens((_req, res) => void res.writeHead(429, { 'Retry-After': '60' }).end(), token('t1'));
    assert.deepEqual([await ask(), await ask()], [502, 502]);
    const reason = service && reasons(service).at(-1);
    assert.deepEqual([login.requests.length, reason], [1, 'oauth2: no token, status 429']);
  });

  it('is asked for again after a minute, however much longer Retry-After wants', async (t) => {
    await start();
    const now = performance.now.bind(performance);
    let ahead = 0;
    t.mock.method(performance, 'now', () => now() + ahead);
    tokens((_req, res) => void res.writeHead(429, { 'Retry-After': '3600' }).end(), token('t1'));
    const askAfter = (milliseconds: number) => {
      ahead = milliseconds;
      return ask();
    };
    assert.deepEqual([await askAfter(0), await askAfter(30_000), await askAfter(60_000)], [502, 502, 200]);
  });

  it('has an older answer stand in where the token endpoint refuses, which says nothing of what a client asks', async () => {
    await start({ cache: { maxAge: 1, staleIfError: '1m' } });
    tokens(token('t1', 1), faults.json({ error: 'invalid_client' }, 401));
    assert.equal(await ask(), 200);
    await setTimeout(950);
    const response = await post();
    assert.match(response.headers.get('cache-status') ?? '', /detail=stale-if-error$/);
    assert.deepEqual([response.status, login.requests.length, bearers()], [200, 2, ['Bearer t1']]);
  });

  it('counts tokens by API', async () => {
    await start({}, {}, { settings: { metrics: { port: 0 } } });
    tokens(faults.serverError(), token('t1'));
    assert.deepEqual([await ask(), await ask()], [502, 200]);
    const found = await scrape(service ?? assert.fail('there is no service'));
    assert.deepEqual(found.table('upstream_tokens_total'), { 'api fetched': 1, 'api failed': 1 });
  });

  it('is sent to the API only: not to a host that a plugin turns to, however it begins', async (t) => {
    const source = `export default { name: 'turning', setup: () => ({ hooks: {
      callApi: (request, _, { next }) => next({ ...request, url: globalThis.turnTo(request.url) }) } }) };`;
    const { files, plugins } = pluginFiles({ turning: source });
    const other = await upstreamFor(t, { '*': faults.json(8) });
    await start({}, {}, { settings: { plugins } }, files);
    tokens(token('t1'));
    for (const to of [`${other.url}/e`, `${upstream.url}.example/e`, `${upstream.url}0/e`]) {
      Reflect.set(globalThis, 'turnTo', () => to);
      await ask();
      assert.deepEqual([login.requests.length, bearers()], [0, []], to);
    }
    assert.deepEqual([other.requests.length, other.requests[0]?.headers.authorization], [1, undefined]);
    Reflect.set(globalThis, 'turnTo', (url: string) => `${url}?more`);
    assert.deepEqual([await ask(), bearers()], [200, ['Bearer t1']]);
  });

  it('tries again with `retry` where the token endpoint was down for a moment, and goes to mirrors with the token', async (t) => {
    const mirror = await upstreamFor(t, { '*': faults.json(8) });
    upstream.on('*', faults.serverError());
    await start({ retry: { attempts: 2 }, mirrors: [mirror.url] });
    tokens(faults.serverError(), token('t1'));
    assert.equal(await ask(), 200);
    const { authorization } = mirror.requests[0]?.headers ?? {};
    assert.deepEqual([login.requests.length, bearers(), authorization], [2, ['Bearer t1'], 'Bearer t1']);
  });
});

describe('a token', async () => {
  const NO_TOKEN = 'oauth2: no token, status 200: access_token is missing, or no token';
  const NO_OBJECT = 'oauth2: no token, status 200: it is no JSON object';
  const NO_TYPE = 'oauth2: no token, status 200: token_type is neither Bearer nor JWT';
  const NO_SECONDS = 'oauth2: no token, status 200: expires_in is no number of seconds';
  const RESET = /^oauth2: network: POST http:\/\/127\.0\.0\.1:\d+ failed: the connection was reset \(ECONNRESET\)$/;
  const refusal = faults.json({ error: 'invalid_client', error_description: SECRET }, 401);
  const failures: [string, Handler, string | RegExp][] = [
    ['refuses the client', refusal, 'oauth2: no token, status 401'],
    ['answers no token', faults.json({ token_type: 'Bearer' }), NO_TOKEN],
    ['answers no JSON', faults.html(), NO_OBJECT],
    ['answers a token of another kind', faults.json({ access_token: 'x', token_type: 'mac' }), NO_TYPE],
    ['answers a list', faults.json([]), NO_OBJECT],
    ['answers a number as a token', faults.json({ access_token: 1, token_type: 'Bearer' }), NO_TOKEN],
    ['is out of order', faults.serverError(), 'oauth2: no token, status 500'],
    ['resets the connection', faults.reset(), RESET],
    ['answers a token that could be two headers', token('t1\r\nX-Other: 1'), NO_TOKEN],
    ['never answers', faults.hang(), /^oauth2: timeout: /],
  ];
  for (const token_type of ['', 'DPoP', 'N_A', 5, ['Bearer'], {}]) {
    const handler = faults.json({ access_token: 'x', token_type });
    failures.push([`answers the type ${JSON.stringify(token_type)}`, handler, NO_TYPE]);
  }
  for (const expires_in of ['soon', '', -1, '-1', true, ['3600'], '1e3', '0x10']) {
    const handler = faults.json({ access_token: 'x', token_type: 'Bearer', expires_in });
    failures.push([`tells the lifetime ${JSON.stringify(expires_in)}`, handler, NO_SECONDS]);
  }
  const taken = [
    ['members that are null', { token_type: 'Bearer', scope: null, refresh_token: null, expires_in: '3600' }],
    ['more members that are null', { token_type: null, expires_in: null, id_token: null }],
    ['no type', {}],
    ['the type of its format', { token_type: 'JWT' }],
    ['a type in lower case', { token_type: 'bearer', expires_in: 3599.5 }],
    ['members that mean nothing here', { scope: ['a'], refresh_token: 5, id_token: 'x', expires_in: '3600.0' }],
  ] as const;

  const upstream = await upstreamFor(suite, { '*': faults.json(7) });
  const login = await upstreamFor(suite);
  /** An API of its own for each answer: a refusal is remembered for a while. */
  const apiOf = (handler: Handler, name: string) => {
    login.on(`/${name}`, handler);
    const oauth2 = { ...CLIENT, tokenUrl: `${login.url}/${name}` };
    return oneApi(upstream.url, { [name]: {} }, { api: { name, oauth2, timeout: 1500 } }).apis;
  };
  const apis = [
    ...failures.flatMap(([, handler], index) => apiOf(handler, `failing${index}`)),
    ...taken.flatMap(([, answer], index) => apiOf(faults.json({ access_token: 'x', ...answer }), `taken${index}`)),
  ];
  const service = await serviceFor(suite, { apis });
  beforeEach(() => upstream.requests.splice(0));

  for (const [index, [what, , text]] of failures.entries()) {
    it(`is 502 where the token endpoint ${what}, and nothing is sent to the upstream`, async () => {
      const before = reasons(service).length;
      await assertRefused(await service.post(`failing${index}/failing${index}`), 502, 'API call failed');
      const [reason] = reasons(service).slice(before);
      if (typeof text === 'string') assert.equal(reason, text);
      else assert.match(`${reason}`, text);
      assert.deepEqual(upstream.requests, []);
      assert.ok(!JSON.stringify(service.logs).includes(SECRET));
    });
  }

  for (const [index, [what]] of taken.entries()) {
    it(`is taken of an answer with ${what}`, async () => {
      assert.equal((await service.post(`taken${index}/taken${index}`)).status, 200);
      const bearers = upstream.requests.map(({ headers }) => headers.authorization);
      assert.deepEqual(bearers, ['Bearer x']);
    });
  }
});
