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
  const endpoints = { e: { parameters: [{ name: 'Authorization', in: 'header' }] } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { api: { headers } }), { env: { PASSWORD } });

  it('is the base64 of the UTF-8 text, wins over a parameter, and is nowhere in the log', async () => {
    const response = await service.post('api/e', { Authorization: 'Bearer mine' });
    assert.equal(response.status, 200);
    const { headers: sent } = upstream.requests.at(-1) ?? assert.fail('not asked');
    const base64 = Buffer.from(`me@example:${PASSWORD}`, 'utf8').toString('base64');
    assert.deepEqual([sent.authorization, sent['x-empty'], sent['x-other']], [`Basic ${base64}`, 'Basic Og==', 'x']);
    const shown = JSON.stringify(service.logs) + (await response.text());
    for (const secret of [PASSWORD, base64]) assert.ok(!shown.includes(secret));
  });

  const isWrong = async (value: unknown, lines: string[], more: object = {}) => {
    const api = { headers: { Authorization: value }, ...more };
    const errors = await errorsOf(oneApi('https://upstream.example', { e: {} }, { api }));
    assert.deepEqual(
      errors,
      lines.map((line) => AT + line),
    );
  };

  it('a colon in the user, and control characters, are errors that show nothing', async () => {
    const colon = '.basic.user: must hold no colon: the password begins there';
    await isWrong({ basic: { user: 'a:b', password: 'c' } }, [colon]);
    const control = ': must hold no line break or other control character';
    await isWrong({ basic: { user: 'a\t', password: 'c\n' } }, [`.basic.user${control}`, `.basic.password${control}`]);
  });

  it('has exactly user and password, both texts', async () => {
    const missing = '.basic.password: required key is missing';
    const misspelt = '.basic.pasword: unknown key, did you mean "password"?';
    const number = '.basic.user: expected a string, found a number, write it in quotes';
    await isWrong({ basic: { user: 'a' } }, [missing]);
    await isWrong({ basic: { user: 1, password: 'x' } }, [number]);
    await isWrong({ basic: { user: 'a', pasword: 'x' } }, [missing, misspelt]);
    await isWrong({ bearer: 'x' }, ['.basic: required key is missing', '.bearer: unknown key, known keys: basic']);
    await isWrong('Basic a:b', []);
  });

  it('leaves no room for `oauth2`, as any Authorization', async () => {
    const oauth2 = { tokenUrl: 'https://login.example/token', clientId: 'a', clientSecret: 'b' };
    const line = ': would be sent in place of the token: leave it out, or oauth2';
    await isWrong({ basic: { user: 'a', password: 'b' } }, [line], { oauth2 });
  });
});
