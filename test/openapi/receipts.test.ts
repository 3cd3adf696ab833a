/** The OpenAPI document describes receipts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { assertValid, describedAt } from './document.ts';

const parameters = [{ name: 'symbol' }, { name: 'filter', in: 'body' }, { name: 'token', in: 'body', secret: true }];
const encoding = { type: 'int256', path: '$.price', times: '*' };
const endpoints = {
  told: { method: 'POST', parameters, receipt: true, encoding },
  live: { mode: 'stream', parameters: [{ name: 'symbol' }], receipt: true },
  untold: { method: 'POST', parameters },
};

describe('the OpenAPI document and receipts', async () => {
  const pathOf = (name: string) => `/endpoints/${service.ids[`api/${name}`]}`;
  const ok = (name: string) => Object(described.at('paths', pathOf(name), 'post', 'responses', '200'));

  const settings = { openapi: true };
  const { service } = await served(suite, endpoints, { answers: { '*': faults.json({ price: 1 }) }, settings });
  const described = await describedAt(service);

  it('is valid, and describes the member that answers have', async () => {
    await assertValid(described);
    const answer = await service.post('api/told', { symbol: 'x', _times: 1 });
    const text = await described.assertDescribed(pathOf('told'), 'post', answer);
    assert.ok('receipt' in JSON.parse(text));
    await described.assertDescribed(pathOf('untold'), 'post', await service.post('api/untold'));
  });

  it('says which operations have one', () => {
    const remark = (name: string) => / with a receipt\b/.test(String(ok(name).description));
    assert.deepEqual(['told', 'live', 'untold'].map(remark), [true, true, false]);
  });

  it('has the refusal of what cannot be hashed', async () => {
    const refused = await service.post('api/told', { filter: '\ud800' });
    await described.assertDescribed(pathOf('told'), 'post', refused);
    const shown = ['post', 'responses', '400', 'content', 'application/json', 'examples'];
    const examples = (name: string) => Object.keys(Object(described.at('paths', pathOf(name), ...shown)));
    assert.ok(examples('told').includes('Invalid_parameter_filter'));
    assert.ok(!examples('told').includes('Invalid_parameter_token'));
    assert.ok(!examples('untold').includes('Invalid_parameter_filter'));
    const rounded = (name: string) => examples(name).filter((each) => each.endsWith('send_this_number_as_a_string'));
    const of = (name: string) => `Invalid_parameter_${name}_send_this_number_as_a_string`;
    assert.deepEqual(rounded('told'), ['symbol', 'filter', 'token', 'times'].map(of));
    assert.deepEqual(rounded('untold'), []);
  });

  it('says nothing of receipts where no endpoint makes one', async (t) => {
    const { untold } = endpoints;
    const other = await describedAt((await served(t, { untold }, { settings })).service);
    assert.doesNotMatch(JSON.stringify(other.at()), /"Receipt"|with a receipt/);
  });
});
