/** What would work in silence, and otherwise than meant, is warned of. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorsOf, warningsOf } from '../support/config.ts';

const api = (more: object = {}) => ({
  name: 'a',
  url: 'https://api.example.com',
  auth: { type: 'free' },
  endpoints: [{ name: 'e', path: '/p' }],
  ...more,
});

describe('what would work in silence, and otherwise than meant', () => {
  it('origins that no browser sends', async () => {
    const bad = [
      'https://example.com/',
      'example.com',
      'https://Example.com',
      'https://example.com:443',
      'https://a/b',
    ];
    assert.deepEqual(
      await errorsOf({ server: { cors: { origins: bad } }, apis: [api()] }),
      bad.map((_, i) => `server.cors.origins[${i}]: is no origin such as https://example.com, without path or slash`),
    );
    const good = [
      'https://example.com',
      'http://localhost:5173',
      'null',
      '*',
      'chrome-extension://abcdef',
      'http://[::1]:80',
    ];
    assert.deepEqual(await errorsOf({ server: { cors: { origins: good.slice(0, 5) } }, apis: [api()] }), []);
  });

  it('a host where a URL belongs, with or without a port', async () => {
    const address = `0x${'1'.repeat(40)}`;
    const free = { auth: { type: 'free' } };
    const places: readonly (readonly [path: string, schemes: string, at: (host: string) => object])[] = [
      ['apis[0].url', 'https:// or http://', (url) => ({ apis: [api({ url })] })],
      ['apis[0].mirrors[0]', 'https:// or http://', (host) => ({ apis: [api({ mirrors: [host] })] })],
      [
        'apis[0].oauth2.tokenUrl',
        'https:// or http://',
        (tokenUrl) => ({ apis: [api({ oauth2: { tokenUrl, clientId: 'a', clientSecret: 'b' } })] }),
      ],
      [
        'apis[0].auth.rpc',
        'https:// or http://',
        (rpc) => ({
          apis: [api({ auth: { type: 'x402', network: 1, rpc, token: address, amount: '1', recipient: address } })],
        }),
      ],
      [
        'settings.openapi.servers[0]',
        'https:// or http://',
        (host) => ({ settings: { openapi: { servers: [host] } } }),
      ],
      [
        'settings.proof.gatewayUrl',
        'https:// or http://',
        (gatewayUrl) => ({ settings: { proof: { type: 'reclaim', gatewayUrl } } }),
      ],
      [
        'settings.signer.url',
        'https:// or http://',
        (url) => ({ settings: { signer: { type: 'web3signer', url, address } } }),
      ],
      ['settings.state.url', 'rediss:// or redis://', (url) => ({ settings: { state: { type: 'redis', url } } })],
    ];
    for (const [path, schemes, at] of places)
      for (const host of ['127.0.0.1:80', 'localhost:8080', 'api.example.com/v1', '//api.example.com'])
        assert.deepEqual(
          await errorsOf({ apis: [api(free)], ...at(host) }),
          [`${path}: has no scheme: write ${schemes} in front`],
          `${path} ${host}`,
        );
  });

  it('origins with a *, which is no pattern (cases, row 27)', async () => {
    const origins = ['https://*.example.com', '*', 'https://example.com', 'http://localhost:*', '*.example.com'];
    const fault = 'never matches, since * stands for no part of an origin: name each origin';
    assert.deepEqual(
      await errorsOf({ server: { cors: { origins } }, apis: [api()] }),
      [0, 3, 4].map((i) => `server.cors.origins[${i}]: ${fault}`),
    );
  });

  it('a port behind a host to listen on', async () => {
    const hosts = { '0.0.0.0:3201': '0.0.0.0', 'localhost:80': 'localhost', '[::1]:3201': '::1' };
    for (const [host, name] of Object.entries(hosts)) {
      const why = `holds a port: write host: ${name} and port: ${host.split(':').at(-1)}`;
      const found = await errorsOf({ server: { host }, settings: { metrics: { port: 9464, host } }, apis: [api()] });
      assert.deepEqual(found.toSorted(), [`server.host: ${why}`, `settings.metrics.host: ${why}`]);
    }
    assert.deepEqual(await errorsOf({ server: { host: '[::]' }, apis: [api()] }), [
      'server.host: has brackets, which belong to URLs: write ::',
    ]);
    for (const host of ['::', '::1', 'fe80::1:3201', '0.0.0.0', 'localhost'])
      assert.deepEqual(await errorsOf({ server: { host }, apis: [api()] }), []);
  });

  it('two API headers of one name', async () => {
    assert.deepEqual(await errorsOf({ apis: [api({ headers: { 'X-Key': '1', 'x-key': '2' } })] }), [
      'apis[0].headers.x-key: is there twice: case does not count',
    ]);
  });

  it('a text that looks like a variable of a shell', async () => {
    const headers = { A: '$API_KEY', B: `\${API_KEY}`, C: '$', D: '$lower', E: '$API_KEY ' };
    assert.deepEqual(await warningsOf({ apis: [api({ headers })] }, { API_KEY: '$SECRET' }), [
      `apis[0].headers.A: the text $API_KEY is taken as it is: a variable is \${API_KEY}`,
    ]);
  });
});
