/** The OpenAPI document describes receipts. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { oneApi } from '../support/answers.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { stopAll } from '../support/stop-all.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { Described } from './document.ts';

const parameters = [{ name: 'symbol' }, { name: 'filter', in: 'body' }, { name: 'token', in: 'body', secret: true }];
const endpoints = {
  told: { method: 'POST', parameters, receipt: true },
  live: { mode: 'stream', parameters: [{ name: 'symbol' }], receipt: true },
  untold: { method: 'POST', parameters },
};

describe('the OpenAPI document and receipts', () => {
  let upstream: Upstream;
  let service: RunningService;
  let document: Record<string, unknown>;
  let described: Described;

  const documentOf = async (service: RunningService): Promise<Record<string, unknown>> =>
    JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
  const pathOf = (name: string) => `/endpoints/${service.ids[`api/${name}`]}`;
  const ok = (name: string) => Object(described.at('paths', pathOf(name), 'post', 'responses', '200'));

  before(async () => {
    upstream = await startUpstream();
    upstream.on('*', (_req, res) => void res.end('{"price":1}'));
    service = await startTestService(oneApi(upstream.url, endpoints, { settings: { openapi: true } }));
    document = await documentOf(service);
    described = new Described(document);
  });
  after(() => stopAll(service, upstream));

  it('is valid, and describes the member that answers have', async () => {
    const { valid, errors } = await new Validator().validate(document);
    assert.ok(valid, JSON.stringify(errors));
    const text = await described.assertDescribed(
      pathOf('told'),
      'post',
      await service.post('api/told', { symbol: 'x' }),
    );
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
    const examples = (name: string) =>
      Object.keys(
        Object(
          described.at('paths', pathOf(name), 'post', 'responses', '400', 'content', 'application/json', 'examples'),
        ),
      );
    assert.ok(examples('told').includes('Invalid_parameter_filter'));
    assert.ok(!examples('told').includes('Invalid_parameter_token'));
    assert.ok(!examples('untold').includes('Invalid_parameter_filter'));
  });

  it('says nothing of receipts where no endpoint makes one', async (t) => {
    const { untold } = endpoints;
    const other = await startTestService(oneApi(upstream.url, { untold }, { settings: { openapi: true } }));
    t.after(() => other.stop());
    assert.doesNotMatch(JSON.stringify(await documentOf(other)), /"Receipt"|with a receipt/);
  });
});
