/** The example configs can be used as they are. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';

const fileOf = (name: string) => fileURLToPath(new URL(`../../examples/configs/${name}.yaml`, import.meta.url));

// A secret of the platform: the seed of an Ed25519 key and its public key.
const { d = '', x = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });

const variables = {
  ZAMA_API_KEY: 'relayer-key',
  HEARTBEAT_ID: 'abc',
  CDP_KEY_ID: 'key',
  CDP_KEY_SECRET: Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64'),
  FACILITATOR_KEY: 'other-key',
  SLACK_WEBHOOK: 'https://hooks.example.com/services/T/B/X',
  PRICE_API_KEY: 'upstream-key',
  CLIENT_KEY: 'client-key-of-some-length',
  CLIENT_KEY_NEXT: 'next-client-key-of-some-length',
  SESSION: 'session-id',
  STATE_PASSWORD: 'of-the-state',
  STATE_CA: rootCertificates[0] ?? '',
};

describe('the example configs', () => {
  it('minimal: one endpoint, nothing to warn of', async () => {
    const { endpoints, warnings } = await loadConfig({ file: fileOf('minimal'), env: {}, builtins: definitions() });
    const listed = endpoints.map(({ api, name, id }) => [api, name, id]);
    assert.deepEqual(listed, [
      ['prices', 'eth-usd', '0xb957de181f1b103b90c4e12b3d22061bc78e1029799d013f2a0c49287df585ab'],
    ]);
    assert.deepEqual(warnings, []);
  });

  it('complete: every key of settings', async () => {
    const { properties } = JSON.parse(
      await readFile(new URL('../../config/config.schema.json', import.meta.url), 'utf8'),
    );
    const { settings } = parse(await readFile(fileOf('complete'), 'utf8'));
    assert.deepEqual(Object.keys(settings).toSorted(), Object.keys(properties.settings.properties).toSorted());
  });

  it('complete: every feature, with the warnings that it explains', async () => {
    const { endpoints, plugins, warnings } = await loadConfig({
      file: fileOf('complete'),
      env: variables,
      builtins: definitions(),
    });
    const listed = endpoints.map(({ api, name, mode }) => `${api}/${name} ${mode}`);
    assert.deepEqual(listed, [
      'prices/pinned sync',
      'prices/several-values sync',
      'prices/any-pair sync',
      'prices/middle sync',
      'prices/requester-chosen sync',
      'prices/proven sync',
      'prices/encrypted sync',
      'reports/raw sync',
      'reports/slow async',
      'reports/priced sync',
      'reports/streamed stream',
    ]);
    assert.deepEqual(
      plugins.filter(({ operator }) => operator).map(({ definition, budget }) => [definition.name, budget]),
      [
        ['ip-allow-list', 1000],
        ['request-logger', 1000],
        ['heartbeat', 2000],
        ['slack-alerts', 1000],
      ],
    );
    const paths = warnings.map(({ path }) => path);
    assert.deepEqual(paths, [
      'server.rateLimit.trustForwardedFor',
      'settings.proof',
      'apis[1].endpoints[1].cache',
      'apis[1].endpoints[3].cache',
    ]);
  });

  it('complete: every variable that it names is reported when it is not set', async () => {
    await assert.rejects(loadConfig({ file: fileOf('complete'), env: {}, builtins: definitions() }), (error: Error) => {
      for (const name of Object.keys(variables))
        assert.match(error.message, new RegExp(`the variable ${name} is not set`));
      return true;
    });
  });
});
