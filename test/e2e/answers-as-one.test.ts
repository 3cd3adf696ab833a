/** An answer that a plugin gives means the same as one of the upstream. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SignedResponse } from '../../plugins-sdk/signed-response.ts';
import { oneApi } from '../support/answers.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';

it('an answer of a plugin in place of the upstream is what its data says, and the text counts only as that of the data', async (t) => {
  const calling = `export default { name: 'calling', setup: () => ({ hooks: { callApi: () => globalThis.testAnswer } }) };`;
  const { files, plugins } = pluginFiles({ calling });
  const encoding = { type: 'int256', path: '$.v', exact: true };
  const service = await serviceFor(t, oneApi('http://a.invalid', { e: { encoding } }, { settings: { plugins } }), {
    files,
  });
  const long = ' '.repeat(70_000);
  const digits = 12345678901234567890123n;
  const rows: readonly (readonly [data: object, text: string, signed: bigint])[] = [
    ...['{"v":2}', '{"v":"1"}', '{}', '[1]', '', 'no JSON', `{"v":2}${long}`, long].map(
      (text) => [{ v: 1 }, text, 1n] as const,
    ),
    [{ v: 1 }, '{"v":1.0}', 1n],
    ...['', long].map((blank) => [{ v: Number(digits) }, `{"v":${digits}}${blank}`, digits] as const),
  ];
  for (const [data, text, signed] of rows) {
    Reflect.set(globalThis, 'testAnswer', { status: 200, data, text });
    const answer = await verifyEncoded(await service.post('api/e'), service.signer.address);
    assert.equal(BigInt(answer.data), signed, text.slice(0, 20));
  }
});

it('members that are added to an answer leave it JSON', () => {
  const text = '{"node":"0x01","endpointId":"0x01","timestamp":1,"data":"0x","signature":"0x01"}';
  const answer = SignedResponse.parse(text);
  assert.equal(answer.with({}).json, text);
  assert.equal(answer.with({ note: undefined }).json, text);
  assert.equal(answer.with({ done: true }).json, `{"done":true,${text.slice(1)}`);
});
