import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SignedResponse } from '../../plugins-sdk/signed-response.ts';
import { oneApi } from '../support/answers.ts';
import { assertRefused } from '../support/http.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { startTestService } from '../support/service.ts';

it('an upstream answer of a plugin whose text is not that of its data is not signed', async (t) => {
  const calling = `export default { name: 'calling', setup: () => ({ hooks: { callApi: () => globalThis.testAnswer } }) };`;
  const { files, plugins } = pluginFiles({ calling });
  const encoding = { type: 'int256', path: '$.v', exact: true };
  const service = await startTestService(oneApi('http://a.invalid', { e: { encoding } }, { settings: { plugins } }), {
    files,
  });
  t.after(() => service.stop());
  for (const text of ['{"v":2}', '{"v":"1"}', '{}', '[1]']) {
    Reflect.set(globalThis, 'testAnswer', { status: 200, data: { v: 1 }, text });
    await assertRefused(await service.post('api/e'), 502, 'API call failed');
  }
  Reflect.set(globalThis, 'testAnswer', { status: 200, data: { v: 1 }, text: '{"v":1.0}' });
  assert.equal((await service.post('api/e')).status, 200);
});

it('members that are added to an answer leave it JSON', () => {
  const text = '{"node":"0x01","endpointId":"0x01","timestamp":1,"data":"0x","signature":"0x01"}';
  const answer = SignedResponse.parse(text);
  assert.equal(answer.with({}).json, text);
  assert.equal(answer.with({ note: undefined }).json, text);
  assert.equal(answer.with({ done: true }).json, `{"done":true,${text.slice(1)}`);
});
