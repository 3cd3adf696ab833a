import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { inTurn } from '../../support/in-turn.ts';
import { type RunningService, startTestService } from '../../support/service.ts';
import { faults, type Handler, startUpstream, type Upstream } from '../../support/upstream.ts';

const SECRET = 'a secret of two parties';
/** Milliseconds that each call takes, and those that each plugin has for itself: less than the calls of a request take. */
const CALL = 300;
const BUDGET = 1000;

/** Who was asked, with which token, and whose URL was signed. */
interface Asked {
  readonly who: string;
  readonly token: string | undefined;
  readonly signedFor: string | undefined;
}

describe('plugins round the upstream call, on one endpoint with one slot', () => {
  const servers: Record<string, Upstream> = {};
  const asked: Asked[] = [];
  let open = 0;
  let most = 0;
  let service: RunningService | undefined;

  /** Notes who is asked, and how many are at the same time. */
  const noting =
    (who: string, handler: Handler): Handler =>
    (req, res, recorded) => {
      open += 1;
      most = Math.max(most, open);
      res.on('close', () => {
        open -= 1;
      });
      const { method, path, headers, body } = recorded;
      const signed = (url: string) => `${method}\n${url}${path}\n${headers['x-timestamp']}\n${body}`;
      const isFor = (url: string) =>
        headers['x-signature'] === createHmac('sha256', SECRET).update(signed(url)).digest('hex');
      const signedFor = Object.keys(servers).find((name) => isFor(servers[name]?.url ?? ''));
      asked.push({ who, token: headers.authorization, signedFor });
      return faults.slow(CALL, handler)(req, res, recorded);
    };
  const answers = (who: string, ...handlers: Handler[]) => servers[who]?.on('*', noting(who, inTurn(...handlers)));
  const urlOf = (who: string) => servers[who]?.url ?? assert.fail(`no server ${who}`);

  const stop = async () => {
    await service?.stop();
    service = undefined;
  };
  const start = async (...names: string[]) => {
    const configs: Record<string, object> = { retry: { backoff: '1ms' }, failover: { rest: '1ms' } };
    const plugins = names.map((name) => ({ ...example(name, configs[name]), timeout: BUDGET }));
    const features = {
      staleIfError: '10m',
      retry: 2,
      failover: [urlOf('b')],
      hmac: { secret: SECRET },
      oauth: { url: `${urlOf('login')}/token`, form: { client_id: 'me' } },
    };
    const api = { ...features, maxConcurrentCalls: 1, timeout: 5000 };
    await stop();
    service = await startTestService(
      oneApi(urlOf('a'), { e: { parameters: [{ name: 'q' }] } }, { api, settings: { plugins } }),
    );
  };
  const ask = async (q = '') => {
    const response = (await service?.post('api/e', { q })) ?? assert.fail('no service');
    return { status: response.status, text: await response.text(), cache: response.headers.get('cache-status') };
  };

  before(async () => {
    for (const name of ['a', 'b', 'login']) servers[name] = await startUpstream();
  });
  beforeEach(() => {
    asked.splice(0);
    most = 0;
    answers('login', faults.json({ access_token: 't1' }), faults.json({ access_token: 't2' }));
  });
  after(async () => {
    await stop();
    for (const server of Object.values(servers)) await server.close();
  });

  it('the first is outermost, each call has the slot to itself, and no budget is charged for it', async () => {
    await start('stale-if-error', 'retry', 'failover', 'upstream-hmac', 'upstream-oauth');
    // All fail; then one rejects the token, and the new one is taken.
    answers('a', faults.serverError(), faults.empty(401), faults.json(7), faults.serverError());
    answers('b', faults.serverError());
    const good = await ask();
    assert.equal(JSON.parse(good.text).rawData, 7, good.text);
    const login = { who: 'login', token: undefined, signedFor: undefined };
    assert.deepEqual(asked, [
      login,
      { who: 'a', token: 'Bearer t1', signedFor: 'a' },
      { who: 'b', token: 'Bearer t1', signedFor: 'b' },
      { who: 'a', token: 'Bearer t1', signedFor: 'a' },
      login,
      { who: 'a', token: 'Bearer t2', signedFor: 'a' },
    ]);
    assert.equal(most, 1);

    // From here on all fail, twice: the old answer is given out.
    asked.splice(0);
    assert.deepEqual(await ask(), { ...good, cache: 'stale-if-error; hit' });
    assert.deepEqual(
      asked.map(({ who }) => who),
      ['a', 'b', 'a', 'b'],
    );
  });

  it('clients of several questions wait for the one slot', async () => {
    await start('stale-if-error', 'retry', 'failover', 'upstream-hmac', 'upstream-oauth');
    answers('a', faults.json(7));
    const all = await Promise.all(['1', '2', '3'].map(ask));
    assert.deepEqual(
      all.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.deepEqual([asked.map(({ who }) => who), most], [['login', 'a', 'a', 'a'], 1]);
  });

  it('in another order they do something else: what is signed outside goes elsewhere as it is', async () => {
    await start('stale-if-error', 'upstream-oauth', 'upstream-hmac', 'failover', 'retry');
    answers('a', faults.serverError());
    answers('b', faults.json(7));
    assert.equal((await ask()).status, 200);
    // The token's request is signed and repeated, too: it passes whatever is inside.
    assert.deepEqual(asked, [
      { who: 'login', token: undefined, signedFor: 'login' },
      { who: 'a', token: 'Bearer t1', signedFor: 'a' },
      { who: 'a', token: 'Bearer t1', signedFor: 'a' },
      { who: 'b', token: 'Bearer t1', signedFor: 'a' },
    ]);
  });

  it('what is wrong in their config is told with its place', async () => {
    const names = ['stale-if-error', 'retry', 'failover', 'upstream-hmac', 'upstream-oauth', 'median'];
    const plugins = names.map((name) => example(name));
    const failure = (api: Readonly<Record<string, unknown>>) =>
      startTestService(oneApi(urlOf('a'), { e: {} }, { api, settings: { plugins } })).then(
        () => assert.fail('it started'),
        (error: Error) => error.message,
      );
    const told = [
      await failure({ staleIfError: '10' }),
      await failure({ retry: 0 }),
      await failure({ failover: ['https://b.example.com/v1'] }),
      await failure({ hmac: { secret: 'short' } }),
      await failure({ oauth: { url: 'https://login.example.com', form: {}, scope: 'a' } }),
    ];
    assert.deepEqual(told, [
      'apis[0].staleIfError: expected a duration (milliseconds, or a text such as 10s), found a string',
      'apis[0].retry: must be at least 1',
      'apis[0].failover[0]: has the wrong form, expected: an origin such as https://b.example.com (pattern ^https?://[^/?#@\\s]+$)',
      'apis[0].hmac.secret: must have at least 16 characters',
      'apis[0].oauth.scope: unknown key, known keys: url, form',
    ]);
  });
});
