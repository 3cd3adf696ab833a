/** `headers: {Authorization: {basic: {user, password}}}`. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { errorsOf } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const PASSWORD = 'p:ä s3cret-word';
const AT = 'apis[0].headers.Authorization';

describe('Basic by user and password', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('*', 7);
  const basic = { user: 'me@example', password: '${PASSWORD}' };
  const headers = { Authorization: { basic }, 'X-Empty': { basic: { user: '', password: '' } }, 'X-Other': 'x' };
  const config = oneApi(
    upstream.url,
    { e: { parameters: [{ name: 'Authorization', in: 'header' }] } },
    { api: { headers } },
  );
  const service = await serviceFor(suite, config, { env: { PASSWORD } });

  it('is the base64 of the UTF-8 text, wins over a parameter, and is nowhere in the log', async () => {
    const response = await service.post('api/e', { Authorization: 'Bearer mine' });
    assert.equal(response.status, 200);
    const { headers: sent } = upstream.requests.at(-1) ?? assert.fail('not asked');
    const base64 = Buffer.from(`me@example:${PASSWORD}`, 'utf8').toString('base64');
    assert.deepEqual([sent.authorization, sent['x-empty'], sent['x-other']], [`Basic ${base64}`, 'Basic Og==', 'x']);
    const shown = JSON.stringify(service.logs) + (await response.text());
    for (const secret of [PASSWORD, base64]) assert.ok(!shown.includes(secret));
  });

  const errors = (value: unknown, more: object = {}) =>
    errorsOf(oneApi('https://upstream.example', { e: {} }, { api: { headers: { Authorization: value }, ...more } }));

  it('a colon in the user, and control characters, are errors that show nothing', async () => {
    assert.deepEqual(await errors({ basic: { user: 'a:b', password: 'c' } }), [
      `${AT}.basic.user: must hold no colon: the password begins there`,
    ]);
    assert.deepEqual(await errors({ basic: { user: 'a\t', password: 'c\n' } }), [
      `${AT}.basic.user: must hold no line break or other control character`,
      `${AT}.basic.password: must hold no line break or other control character`,
    ]);
  });

  it('has exactly user and password, both texts', async () => {
    assert.deepEqual(await errors({ basic: { user: 'a' } }), [`${AT}.basic.password: required key is missing`]);
    assert.deepEqual(await errors({ basic: { user: 1, password: 'x' } }), [
      `${AT}.basic.user: expected a string, found a number, write it in quotes`,
    ]);
    assert.deepEqual(await errors({ basic: { user: 'a', pasword: 'x' } }), [
      `${AT}.basic.password: required key is missing`,
      `${AT}.basic.pasword: unknown key, did you mean "password"?`,
    ]);
    assert.deepEqual(await errors({ bearer: 'x' }), [
      `${AT}.basic: required key is missing`,
      `${AT}.bearer: unknown key, known keys: basic`,
    ]);
    assert.deepEqual(await errors('Basic a:b'), []);
  });

  it('leaves no room for `oauth2`, as any Authorization', async () => {
    const oauth2 = { tokenUrl: 'https://login.example/token', clientId: 'a', clientSecret: 'b' };
    assert.deepEqual(await errors({ basic: { user: 'a', password: 'b' } }, { oauth2 }), [
      `${AT}: would be sent in place of the token: leave it out, or oauth2`,
    ]);
  });
});
