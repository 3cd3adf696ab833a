/** jwt-auth lets in who has a valid token. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { generateKeyPair, SignJWT } from 'jose';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { AUDIENCE, bearer, identityProvider } from '../../support/jwt.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

async function start(t: TestContext, auth: object = {}) {
  const upstream = await upstreamFor(t, { '/e': faults.json(7) });
  const provider = await identityProvider(upstream);
  const endpoints = { e: { auth: { ...provider.method, ...auth } } };
  const service = await serviceFor(
    t,
    oneApi(upstream.url, endpoints, { settings: { plugins: [example('jwt-auth')] } }),
  );
  const ask = (token: string) => service.post('api/e', {}, bearer(token));
  const reasons = () => service.logs.flatMap(({ fields }) => (fields.detail === undefined ? [] : [fields.detail]));
  return { ...provider, upstream, service, ask, reasons };
}

describe('jwt-auth', () => {
  it('lets in who has a token, under the name in it; keys are fetched once', async (t) => {
    const { ask, token, service, upstream } = await start(t);
    const tokens = [await token(), await token({ aud: ['others', AUDIENCE] })];
    const responses = await Promise.all(tokens.map(ask));
    const statuses = responses.map(({ status }) => status);
    assert.deepEqual(statuses, [200, 200]);
    assert.equal(upstream.requests.filter(({ path }) => path === '/jwks').length, 1);
    const names = service.logs.flatMap(({ fields }) => (fields.client === undefined ? [] : [fields.client]));
    assert.deepEqual(names, ['ada', 'ada']);
  });

  it('refuses whoever has none', async (t) => {
    const { service } = await start(t);
    for (const Authorization of [undefined, '', 'Basic YTpi', 'Bearer', 'Bearer a b'])
      await assertRefused(
        await service.post('api/e', {}, Authorization === undefined ? {} : { Authorization }),
        401,
        'Missing bearer token',
      );
    assert.equal((await service.post('api/e')).headers.get('www-authenticate'), 'Bearer');
  });

  it('refuses tokens that are wrong, old, of others or for others', async (t) => {
    const { ask, token } = await start(t);
    await assertRefused(await ask(await token({ exp: 1 })), 401, 'Token expired');
    const wrong = [
      'abc',
      `${await token()}x`,
      await token({ iss: 'https://elsewhere.example/' }),
      await token({ aud: 'others' }),
      await token({ nbf: Math.floor(Date.now() / 1000) + 600 }),
      await token({ exp: undefined }),
      await token({ sub: undefined }),
      await token({}, 'unknown'),
    ];
    for (const each of wrong) {
      const response = await ask(each);
      assert.equal(response.headers.get('www-authenticate'), 'Bearer');
      await assertRefused(response, 401, 'Invalid token');
    }
  });

  it('takes no algorithm but those of the config', async (t) => {
    const { ask, token, jwk, method } = await start(t, { algorithms: ['RS256'] });
    await assertRefused(await ask(await token()), 401, 'Invalid token');
    const claims = { iss: method.issuer, aud: AUDIENCE, sub: 'eve', exp: Math.floor(Date.now() / 1000) + 600 };
    const published = new TextEncoder().encode(JSON.stringify(jwk));
    const { privateKey } = await generateKeyPair('RS256');
    const forged = [
      await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(published),
      await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(privateKey),
      `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify(claims))}.`,
    ];
    for (const each of forged) await assertRefused(await ask(each), 401, 'Invalid token');
  });

  it('says when tokens cannot be checked, and recovers', async (t) => {
    const { ask, token, upstream, reasons, jwk } = await start(t);
    const broken = [faults.serverError(), faults.html(), faults.json({ keys: 1 }), faults.reset()];
    const sent = await token();
    for (const fault of broken) {
      upstream.on('/jwks', fault);
      await assertRefused(await ask(sent), 503, 'Tokens cannot be checked');
    }
    assert.deepEqual(reasons(), [
      'JOSEError: Expected 200 OK from the JSON Web Key Set HTTP response',
      'JOSEError: Failed to parse the JSON Web Key Set HTTP response as JSON',
      'JWKSInvalid: JSON Web Key Set malformed',
      'TypeError: fetch failed',
    ]);
    upstream.json('/jwks', { keys: [jwk] });
    assert.equal((await ask(sent)).status, 200);
  });

  it('keeps tokens out of the log', async (t) => {
    const { ask, token, service } = await start(t);
    const tokens = [await token(), await token({ exp: 1 }), await token({}, 'unknown')];
    for (const each of tokens) await ask(each);
    const said = JSON.stringify(service.logs);
    for (const each of tokens) for (const part of each.split('.').slice(1)) assert.ok(!said.includes(part));
  });

  it('does not start with an algorithm that both sides have the key of', async (t) => {
    await assert.rejects(start(t, { algorithms: ['HS256'] }), /auth\.algorithms\[0\]/);
  });
});
