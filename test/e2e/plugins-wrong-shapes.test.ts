/** A wrong result of an inner function is a 500, and the log names the member. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

describe('what an inner function of a plugin returns wrongly is a 500, and the log names the member', () => {
  const shape = (why: string) => `returned something of the wrong shape: ${why}`;
  const cases: readonly [hook: string, returned: string, why: string][] = [
    ['resolve', '{ ...endpoints[0] }', shape('it must be one of services.endpoints, and no copy of one')],
    ['encode', "{ bytes: '01secret', field: 'data', value: 1 }", shape('bytes must be 0x hex')],
    ['encode', "{ byte: '0x01', field: 'data', value: 1 }", 'returned a member "byte", did you mean "bytes"?'],
    ['callApi', "{ status: 'secret', data: 1 }", shape('status must be an integer')],
    ['callApi', '{ status: 200, date: 1 }', 'returned a member "date", did you mean "data"?'],
    ['sign', "{ node: 'secret', signature: '0x01' }", shape('node must be 0x hex')],
    ['authenticate', '{ token: () => false }', shape('it must be true or undefined')],
    ['present', "{ mine: () => ({ status: 99, body: '' }) }", shape('status must be an integer from 200 to 599')],
    ['present', "{ mine: () => ({ status: 200, headers: { 'x-a': 1 } }) }", shape('the header "x-a" must be a text')],
  ];

  for (const [hook, returned, why] of cases) {
    it(`${hook}: ${why}`, async (t) => {
      const isTable = hook === 'authenticate' || hook === 'present';
      const made = isTable ? returned : `() => (${returned})`;
      const odd = `export default { name: 'odd', auth: { token: { type: 'object' } }, modes: ['mine'],
        setup: ({ endpoints }) => ({ hooks: { ${hook}: ${made} } }) };`;
      const endpoint = {
        ...(hook === 'authenticate' && { auth: { type: 'token' } }),
        ...(hook === 'present' && { mode: 'mine' }),
        ...(hook === 'encode' && { encoding: { type: 'int256', path: '$.a' } }),
      };
      const { service } = await served(
        t,
        { e: endpoint },
        { answers: { '/e': faults.json({ a: 1 }) }, sources: { odd } },
      );
      await assertRefused(await service.post('api/e'), 500, 'Internal server error');
      const line = service.logs.find(({ fields }) => fields.detail !== undefined);
      assert.equal(String(line?.fields.detail).split('\n')[0], `plugin "odd": Error: ${why}`);
      assert.equal(JSON.stringify(service.logs).includes('secret'), false);
    });
  }
});
