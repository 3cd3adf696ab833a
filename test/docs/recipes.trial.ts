import assert from 'node:assert/strict';
import { it } from 'node:test';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const token = 'a-token-of-sixteen-characters-or-more';
const notForAda = `import { Refusal } from 'signed-data-proxy/plugins-sdk';
const authorize = ({ user }) => {
  if (user === 'ada') throw new Refusal(403, 'Not for ada');
};
export default { name: 'not-for-ada', setup: () => ({ hooks: { authorize } }) };`;

it('the recipes of CONTRIBUTING.md do what they say', async (t) => {
  const upstream = await upstreamFor(t);
  upstream.json('/p', 1);
  const endpoint = { name: 'e', path: '/p', mode: 'text', parameters: [{ name: 'user' }] };
  const service = await serviceFor(
    t,
    {
      server: { cors: { maxAge: 60 } },
      settings: { plugins: [{ source: './not-for-ada.mjs' }] },
      apis: [{ name: 'a', url: upstream.url, auth: { type: 'bearer', tokens: [token] }, endpoints: [endpoint] }],
    },
    { files: { 'not-for-ada.mjs': notForAda } },
  );
  const ask = (user: string, sent: string) => service.post('a/e', { user }, { Authorization: `Bearer ${sent}` });

  const { headers } = await fetch(service.url, { method: 'OPTIONS' });
  assert.equal(headers.get('access-control-max-age'), '60');
  assert.equal(headers.get('access-control-allow-headers')?.includes('Authorization'), true);

  const answer = await ask('bob', token);
  assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'text/plain']);
  assert.match(await answer.text(), /"signature":"0x/);

  const stranger = await ask('bob', 'wrong');
  assert.deepEqual([stranger.status, await stranger.json()], [401, { error: 'Invalid bearer token' }]);

  const ada = await ask('ada', token);
  assert.deepEqual([ada.status, await ada.json()], [403, { error: 'Not for ada' }]);
  assert.equal(upstream.requests.length, 1);
});
