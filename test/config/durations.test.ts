/** Durations of a config are read with their units, and short ones are warned of. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Check } from 'typebox/value';
import { composeSchema } from '../../config/schema/publish.ts';
import { definitions } from '../../service/index.ts';
import { loadObject } from '../support/config.ts';
import { type Block, oneApi } from '../support/service.ts';

const URL = 'https://a.example';
const withCache = (maxAge: unknown) => oneApi(URL, { e: { cache: { maxAge } } });
const cacheOf = async (maxAge: unknown, env: Record<string, string> = {}) => {
  const { endpoints } = await loadObject(withCache(maxAge), env);
  return endpoints[0]?.block.cache;
};

describe('durations of a config', () => {
  it('are milliseconds or a text with a unit', async () => {
    const texts: [unknown, number][] = [
      [1500, 1500],
      ['500ms', 500],
      ['10s', 10_000],
      ['2m', 120_000],
      ['1h', 3_600_000],
      ['1d', 86_400_000],
    ];
    for (const [written, maxAge] of texts) assert.deepEqual(await cacheOf(written), { maxAge }, String(written));
  });

  it('come from variables, too', async () => {
    for (const [written, value] of [
      ['${AGE}', '10s'],
      ['${AGE}', '10000'],
      ['${AGE}s', '10'],
      ['1${AGE}', '0s'],
    ] as const)
      assert.deepEqual(await cacheOf(written, { AGE: value }), { maxAge: 10_000 }, `${written} ${value}`);
  });

  it('may stand wherever the config has milliseconds', async () => {
    const free = { type: 'free' };
    const config: Block = {
      server: { drainDelay: '5s', rateLimit: { window: '1m', max: 9, x402: { window: '2m' } } },
      settings: {
        plugins: [{ source: 'builtin:fhe', timeout: '20s', config: { lifetime: '2h' } }],
        proof: { type: 'reclaim', gatewayUrl: URL, timeout: '15s' },
        signer: { type: 'json-rpc', url: URL, address: `0x${'1'.repeat(40)}`, timeout: '1s' },
      },
      apis: [
        {
          name: 'a',
          url: URL,
          timeout: '3s',
          auth: [
            free,
            { type: 'apiKey', keys: [{ name: 'k', key: 'x'.repeat(32), rateLimit: { window: '1h', max: 1 } }] },
          ],
          endpoints: [{ name: 'e', path: '/' }],
        },
      ],
    };
    const { config: loaded, plugins } = await loadObject(config);
    assert.deepEqual(loaded.server, {
      drainDelay: 5000,
      rateLimit: { window: 60_000, max: 9, x402: { window: 120_000 } },
    });
    const { proof, signer } = loaded.settings as { proof: Block; signer: Block };
    assert.deepEqual([proof.timeout, signer.timeout], [15_000, 1000]);
    const [api] = loaded.apis as { timeout: unknown; auth: [Block, { keys: [{ rateLimit: Block }] }] }[];
    assert.equal(api?.timeout, 3000);
    assert.deepEqual(api?.auth[1].keys[0].rateLimit, { window: 3_600_000, max: 1 });
    const fhe = plugins.find(({ definition }) => definition.name === 'fhe');
    assert.deepEqual([fhe?.budget, Object(fhe?.config).lifetime], [20_000, 7_200_000]);
  });

  it('pass the published schema in both forms', () => {
    const schema = composeSchema(definitions());
    const file = (maxAge: unknown) => ({ version: '1.0', ...withCache(maxAge) });
    for (const written of [1, 10_000, '500ms', '1d', '${AGE}'])
      assert.ok(Check(schema, file(written)), String(written));
    for (const written of ['10', '10 s', 0, 1.5, '']) assert.ok(!Check(schema, file(written)), String(written));
    assert.ok(!JSON.stringify(schema).includes('"duration"'));
  });
});
