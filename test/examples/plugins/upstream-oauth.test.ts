import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { inTurn } from '../../support/in-turn.ts';
import { type RunningService, startTestService } from '../../support/service.ts';
import { faults, type Handler, startUpstream, type Upstream } from '../../support/upstream.ts';

describe('upstream-oauth', () => {
  let upstream: Upstream;
  let login: Upstream;
  let service: RunningService;
  const post = (q: string) => service.post('api/e', { q });
  const ask = async (q: string) => {
    const response = await post(q);
    assert.equal(response.status, 200, await response.text());
  };
  const ten = () => Promise.all(Array.from({ length: 10 }, (_, q) => ask(`${q}`)));
  const tokens = (...given: object[]) => login.on('/token', inTurn(...given.map((token) => faults.json(token))));
  const bearers = () => upstream.requests.splice(0).map(({ headers }) => headers.authorization);
  const reason = () => service.logs.findLast(({ message }) => message === 'API call failed')?.fields.reason;
  /** Takes only calls with one of these tokens. */
  const taking =
    (...good: string[]): Handler =>
    (req, ...rest) =>
      (good.includes(`${req.headers.authorization}`) ? faults.json(7) : faults.empty(401))(req, ...rest);

  /** With the clock as it is then. */
  const start = async () => {
    const form = { client_id: 'me', client_secret: 's3cret &', scope: 'prices' };
    const api = { maxConcurrentCalls: 2, oauth: { url: `${login.url}/token`, form } };
    const { apis } = oneApi(upstream.url, { e: { parameters: [{ name: 'q' }] } }, { api });
    const { apis: others } = oneApi(upstream.url, { e: {} }, { api: { name: 'open' } });
    await service?.stop();
    service = await startTestService({
      settings: { plugins: [example('upstream-oauth')] },
      apis: [...apis, ...others],
    });
  };

  before(async () => {
    upstream = await startUpstream();
    login = await startUpstream();
  });
  beforeEach(async () => {
    upstream.on('*', faults.json(7));
    upstream.requests.splice(0);
    login.requests.splice(0);
    await start();
  });
  after(async () => {
    await service.stop();
    await upstream.close();
    await login.close();
  });

  it('asks for one token for all who wait for it, and for those who come later', async () => {
    tokens({ access_token: 't1', expires_in: 3600 }, { access_token: 't2' });
    await ten();
    await ask('later');
    assert.deepEqual(bearers(), Array(11).fill('Bearer t1'));
    const [{ method, headers, body } = assert.fail('no token was asked for'), ...others] = login.requests;
    assert.deepEqual(others, []);
    assert.deepEqual([method, headers['content-type']], ['POST', 'application/x-www-form-urlencoded']);
    assert.equal(body, 'grant_type=client_credentials&client_id=me&client_secret=s3cret+%26&scope=prices');
  });

  it('renews a token before its end', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
    await start();
    tokens({ access_token: 't1', expires_in: 100 }, { access_token: 't2' }, { access_token: 't3' });
    await ask('a');
    t.mock.timers.tick(89_999);
    await ask('b');
    t.mock.timers.tick(1);
    await ask('c');
    // Without a time of its own it is kept for an hour.
    t.mock.timers.tick(3_239_999);
    await ask('d');
    assert.deepEqual(bearers(), ['Bearer t1', 'Bearer t1', 'Bearer t2', 'Bearer t2']);
  });

  it('renews one that the upstream rejects, once for all', async () => {
    tokens({ access_token: 't1' }, { access_token: 't2' });
    await ask('a');
    upstream.on('*', taking('Bearer t2'));
    await ten();
    await ask('b');
    assert.equal(login.requests.length, 2);
    assert.equal(bearers().at(-1), 'Bearer t2');
  });

  it('an upstream that rejects the new one, too, is believed', async () => {
    tokens({ access_token: 't1' }, { access_token: 't2' });
    upstream.on('*', taking());
    await assertRefused(await post('a'), 502, 'API call failed');
    assert.deepEqual([bearers(), login.requests.length], [['Bearer t1', 'Bearer t2'], 2]);
    assert.equal(reason(), 'upstream status 401');
  });

  it('without a token nothing is asked, and the next request tries again', async () => {
    for (const [fault, why] of [
      [faults.empty(401), 'upstream status 401'],
      [faults.serverError(), 'upstream status 500'],
      [faults.json({ error: 'none' }), 'no access_token'],
    ] as const) {
      login.on('/token', fault);
      await assertRefused(await post('a'), 502, 'API call failed');
      assert.equal(reason(), why);
    }
    assert.deepEqual([bearers(), login.requests.length], [[], 3]);
    tokens({ access_token: 't1' });
    await ask('a');
  });

  it('leaves other APIs alone', async () => {
    assert.equal((await service.post('open/e')).status, 200);
    assert.deepEqual([bearers(), login.requests.length], [[undefined], 0]);
  });
});
