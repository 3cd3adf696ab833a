/** The key `receipt` changes no endpoint ID, goes with its plugin, and is not recommended. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorsOf, loadObject } from '../support/config.ts';
import { oneApi, serviceFor } from '../support/service.ts';

const URL = 'https://api.example.com';
const config = (endpoint: object, api: Readonly<Record<string, unknown>> = {}) =>
  oneApi(URL, { one: { ...endpoint } }, { api });

describe('the key `receipt`', () => {
  it('is no part of the endpoint ID', async () => {
    const parameters = [{ name: 'q' }];
    const idOf = async (endpoint: object, api?: Readonly<Record<string, unknown>>) =>
      (await loadObject(config({ parameters, ...endpoint }, api))).endpoints[0]?.id;
    const id = await idOf({});
    assert.deepEqual([await idOf({ receipt: true }), await idOf({ receipt: false }, { receipt: true })], [id, id]);
  });

  it('is an unknown key where the plugin is left out', async () => {
    const settings = { plugins: [{ source: 'builtin:receipt', enabled: false }] };
    const [error = ''] = await errorsOf({ ...config({ receipt: true }), settings });
    assert.match(error, /^apis\[0\]\.endpoints\[0\]\.receipt: unknown key/);
  });

  it('is not warned of, nor recommended, by a start', async (t) => {
    const service = await serviceFor(t, config({ parameters: [{ name: 'q' }] }));
    assert.ok(service.logs.every(({ level, message }) => level === 'info' && !/receipt/.test(message)));
  });
});
