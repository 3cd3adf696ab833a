/** Each wrong shape of a config has its words, with the path and what would be right. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configKey, Type } from '../../plugins-sdk/config-key.ts';
import type { Definition } from '../../plugins-sdk/define.ts';
import { api, builtins, config, endpoint, errorsOf, load } from './support.ts';

const plugin = (changes: Partial<Definition>): Definition => ({ name: 'extra', setup: () => ({}), ...changes });

test('a valid config has no errors and is handed over as it is', async (t) => {
  const given = config({
    server: { port: 0, rateLimit: { max: 1, proofs: { max: 2 } } },
    settings: { proof: { type: 'gateway', gatewayUrl: 'https://g' }, plugins: [] },
    apis: [
      api({
        cache: { maxAge: 5 },
        endpoints: [
          endpoint({ description: 'd', mode: 'async', cache: { maxAge: 1 }, auth: [{ type: 'apiKey', keys: ['k'] }] }),
        ],
      }),
    ],
  });
  const loaded = await load(t, given);
  assert.deepEqual(loaded.config, given);
  assert.deepEqual(loaded.warnings, []);
});

test('an unknown key names its path and the nearest known key of its level', async (t) => {
  const given = config({
    servr: {},
    server: { prot: 1, rateLimit: { mx: 1, proofs: { maxx: 1 } } },
    settings: { proof: 'none', xyzzy: 1 },
    apis: [api({ ulr: 'x', endpoints: [endpoint(), endpoint({ name: 'b', path: '/b', encodign: 1, METHOD: 'GET' })] })],
  });
  assert.deepEqual(await errorsOf(t, given), [
    'servr: unknown key, did you mean "server"?',
    'server.prot: unknown key, did you mean "port"?',
    'server.rateLimit.mx: unknown key, did you mean "max"?',
    'server.rateLimit.proofs.maxx: unknown key, did you mean "max"?',
    'settings.xyzzy: unknown key, known keys: proof, plugins',
    'apis[0].ulr: unknown key, did you mean "url"?',
    'apis[0].endpoints[1].encodign: unknown key, known keys: name, description, mode, auth, path, method, parameters, cache, retry',
    'apis[0].endpoints[1].METHOD: unknown key, did you mean "method"?',
  ]);
});

test('the same in a file of hundreds of endpoints, and none without a mistake', async (t) => {
  const many = (last: Readonly<Record<string, unknown>>) =>
    config({
      apis: [
        api({
          endpoints: [
            ...Array.from({ length: 299 }, (_, i) => endpoint({ name: `e${i}`, path: `/${i}` })),
            endpoint(last),
          ],
        }),
      ],
    });
  assert.deepEqual(await errorsOf(t, many({})), []);
  assert.deepEqual(await errorsOf(t, many({ METHOD: 'GET' })), [
    'apis[0].endpoints[299].METHOD: unknown key, did you mean "method"?',
  ]);
});

test('required keys that are missing', async (t) => {
  assert.deepEqual(await errorsOf(t, '{}'), ['version: required key is missing', 'apis: required key is missing']);
  assert.deepEqual(await errorsOf(t, config({ apis: [{ endpoints: [{}] }] })), [
    'apis[0].name: required key is missing',
    'apis[0].url: required key is missing',
    'apis[0].endpoints[0].name: required key is missing',
    'apis[0].endpoints[0].path: required key is missing',
  ]);
  assert.deepEqual(await errorsOf(t, config({ apis: [api({ endpoints: [] })] })), [
    'apis[0].endpoints: must not be empty',
  ]);
  assert.deepEqual(await errorsOf(t, config({ apis: [] })), ['apis: must not be empty']);
});

test('a key in a mapping that is not there is not required, in one that is there it is', async (t) => {
  assert.deepEqual(await errorsOf(t, config()), []);
  const apis = [api({ endpoints: [endpoint({ retry: {} })] })];
  assert.deepEqual(await errorsOf(t, config({ apis })), ['apis[0].endpoints[0].retry.times: required key is missing']);
});

test('keys of the levels server, settings, root and apiOrEndpoint are never required', async (t) => {
  const keys = (['root', 'server', 'settings', 'apiOrEndpoint'] as const).map((level) =>
    configKey(level, `my-${level}`, Type.String()),
  );
  assert.deepEqual(
    await errorsOf(t, config({ server: {}, settings: {} }), { builtins: [...builtins, plugin({ keys })] }),
    [],
  );
  const errors = await errorsOf(t, config(), {
    builtins: [...builtins, plugin({ keys: [configKey('api', 'region', Type.String())] })],
  });
  assert.deepEqual(errors, ['apis[0].region: required key is missing']);
});

test('a wrong type says what was expected and what was found', async (t) => {
  const given = `
version: 1.0
server: {port: "x", rateLimit: [], }
settings:
  proof: 3
apis:
  - name: 7
    url: true
    headers: {a: 1, b: null, c: {}}
    auth: free
    endpoints:
      - name: {}
        path:
        retry: {times: 1.5}
        parameters: {name: x}
`;
  assert.deepEqual(await errorsOf(t, given), [
    'version: expected a string, found a number, write it in quotes',
    'server.port: expected an integer, found a string',
    'server.rateLimit: expected a mapping, found a list',
    'settings.proof: expected "none" or a mapping, found a number',
    'apis[0].name: expected a string, found a number, write it in quotes',
    'apis[0].url: expected a string, found a boolean, write it in quotes',
    'apis[0].headers.a: expected a string, found a number, write it in quotes',
    'apis[0].headers.b: expected a string, found nothing',
    'apis[0].headers.c: expected a string, found a mapping',
    'apis[0].auth: expected a mapping or a list, found a string',
    'apis[0].endpoints[0].name: expected a string, found a mapping',
    'apis[0].endpoints[0].path: expected a string, found nothing',
    'apis[0].endpoints[0].retry.times: expected an integer, found a number',
    'apis[0].endpoints[0].parameters: expected a list, found a mapping',
  ]);
});

test('the version is 1. and a number (decisions, Since the first release)', async (t) => {
  for (const version of ['1.0', '1.1', '1.12', '1.00'])
    assert.deepEqual(await errorsOf(t, config({ version })), [], version);
  const wrong =
    'version: has the wrong form, expected: 1.<number>, such as 1.0: the version of the format that this release reads (pattern ^1\\.\\d+$)';
  for (const version of ['1', '1.', 'v1.0', '1.0.0', '', '1.x', '2.0', '0.9', '12.34', '11.0', ' 1.0', '1.0\n']) {
    assert.deepEqual(await errorsOf(t, config({ version })), [wrong], version);
  }
  assert.deepEqual(await errorsOf(t, config({ version: 1 })), [
    'version: expected a string, found a number, write it in quotes',
  ]);
  assert.deepEqual(await errorsOf(t, config({ version: `\${V}` }), { env: { V: '1.1' } }), []);
});

test('what other tools have for sharing parts of a file is answered with what there is here', async (t) => {
  const text = `version: '1.0'
x-shared: &shared { type: free }
apis:
  - name: a
    url: https://api.example.com
    auth: *shared
    endpoints:
      - &first { name: e, path: /e }
      - { <<: *first, name: f, path: /f }
`;
  assert.deepEqual(await errorsOf(t, text), [
    'x-shared: unknown key, there are no extension keys: put the anchor (&name) where its value is used first',
    'apis[0].endpoints[1]["<<"]: unknown key, YAML 1.2 has no merge keys: share a whole value, by an anchor (&name) and aliases (*name)',
  ]);
  const shared = `version: '1.0'
apis:
  - { name: a, url: https://a.example.com, auth: &shared { type: free }, endpoints: [&one { name: e, path: /e }] }
  - { name: b, url: https://b.example.com, auth: *shared, endpoints: [*one] }
`;
  assert.deepEqual(await errorsOf(t, shared), []);
});

test('bounds and choices', async (t) => {
  const given = config({
    apis: [api({ endpoints: [endpoint({ mode: 'snyc', method: 'get', cache: { maxAge: 0 } })] })],
    server: { port: 70000, rateLimit: { max: 0 } },
    settings: { proof: 'non' },
  });
  assert.deepEqual(await errorsOf(t, given), [
    'server.port: must be at most 65535',
    'server.rateLimit.max: must be at least 1',
    'settings.proof: expected "none" or a mapping, found a string, did you mean "none"?',
    'apis[0].endpoints[0].mode: expected one of "sync", "async", did you mean "sync"?',
    'apis[0].endpoints[0].method: expected one of "GET", "POST", did you mean "GET"?',
    'apis[0].endpoints[0].cache.maxAge: must be at least 1',
  ]);
});

test('auth is told apart by its type', async (t) => {
  const errors = (auth: unknown) => errorsOf(t, config({ apis: [api({ auth })] }));
  const types = 'expected one of "free", "apiKey", "paid"';
  assert.deepEqual(await errors([]), ['apis[0].auth: must not be empty']);
  assert.deepEqual(await errors({ type: 'apikey', keys: ['k'] }), [
    `apis[0].auth.type: ${types}, did you mean "apiKey"?`,
  ]);
  assert.deepEqual(await errors([{ type: 'free' }, { type: 'oauth' }]), [`apis[0].auth[1].type: ${types}`]);
  assert.deepEqual(await errors({ keys: ['k'] }), [`apis[0].auth.type: required key is missing, ${types}`]);
  assert.deepEqual(await errors({ type: 'apiKey' }), ['apis[0].auth.keys: required key is missing']);
  assert.deepEqual(await errors({ type: 'apiKey', keys: [] }), ['apis[0].auth.keys: must not be empty']);
  assert.deepEqual(await errors({ type: 'apiKey', keys: ['k'], key: 'k' }), [
    'apis[0].auth.key: unknown key, did you mean "keys"?',
  ]);
  assert.deepEqual(await errors([{ type: 'paid', network: 'x', rpc: 'ftp://x' }]), [
    'apis[0].auth[0].network: expected an integer, found a string',
    'apis[0].auth[0].rpc: has the wrong form (pattern ^https?://)',
  ]);
});

test('with one auth type its errors are as clear', async (t) => {
  const one = [...builtins.filter(({ name }) => name !== 'access'), plugin({ auth: { free: Type.Object({}) } })];
  const errors = await errorsOf(t, config({ apis: [api({ auth: { type: 'fre', x: 1 } })] }), { builtins: one });
  assert.deepEqual(errors, ['apis[0].auth.type: expected "free"']);
});

test('values are never shown', async (t) => {
  const secret = 'hunter2-very-secret';
  const given = config({
    version: secret,
    server: { port: secret },
    settings: { proof: secret },
    apis: [
      api({
        url: secret,
        headers: { a: { b: secret } },
        auth: [{ type: secret }, { type: 'apiKey', keys: secret }, { type: 'paid', network: '${S}', rpc: '${S}' }],
        endpoints: [endpoint({ mode: '${S}', method: secret, parameters: [{ name: 'a', fixed: { x: secret } }] })],
      }),
    ],
  });
  const errors = await errorsOf(t, given, { env: { S: secret } });
  assert.equal(errors.length, 11);
  assert.ok(!errors.join('\n').includes(secret));
});

test('names are unique and printable', async (t) => {
  const names = (...list: unknown[]) => {
    return errorsOf(
      t,
      config({ apis: [api({ endpoints: list.map((name, index) => endpoint({ name, path: `/${index}` })) })] }),
    );
  };
  assert.deepEqual(await names('a b', 'BTC/USD', 'ü', ' a', 'x'.repeat(2000)), []);
  assert.deepEqual(await names(''), ['apis[0].endpoints[0].name: must not be empty']);
  for (const name of ['a\nb', 'a\u001b[31m', 'a\u0000', 'a\u0085', 'a\u2028b', '\ud800']) {
    assert.deepEqual(
      await names(name),
      ['apis[0].endpoints[0].name: must not contain control characters or line breaks'],
      JSON.stringify(name),
    );
  }
  assert.deepEqual(await names('a', 'b', 'a', 'a'), [
    'apis[0].endpoints[2].name: there is another endpoint with the name "a"',
    'apis[0].endpoints[3].name: there is another endpoint with the name "a"',
  ]);
});

test('two APIs of one name, and endpoints that the log could not tell apart', async (t) => {
  const first = api({ name: 'a', endpoints: [endpoint({ name: 'b/c' })] });
  const second = api({ name: 'a', url: 'https://b.example' });
  const third = api({ name: 'a/b', url: 'https://c.example', endpoints: [endpoint({ name: 'c' })] });
  assert.deepEqual(await errorsOf(t, config({ apis: [first, second, third] })), [
    'apis[1].name: there is another API with the name "a"',
    'apis[2].endpoints[0].name: another endpoint is called "a/b/c" in the log, too',
  ]);
});

test('two endpoints with one ID are an error that names both', async (t) => {
  const apis = [api(), api({ name: 'copy', endpoints: [endpoint({ name: 'same', description: 'x' })] })];
  assert.deepEqual(await errorsOf(t, config({ apis })), [
    'apis[1].endpoints[0]: "copy/same" and "prices/latest" (apis[0].endpoints[0]) have the same endpoint ID: they are the same request. To have both, give one a parameter that the upstream ignores, such as {name: via, fixed: stream}',
  ]);
});

test('checks of plugins are reported in the order of the file, with everything else', async (t) => {
  const check = plugin({
    check: ({ endpoints }) =>
      endpoints.map(({ path }) => ({ level: 'error', path: `${path}.path`, message: 'is odd\nindeed' })),
  });
  const given = config({
    apis: [api({ endpoints: [endpoint(), endpoint({ name: 'b', pth: 1 }), endpoint({ name: 'c', path: '/c' })] })],
  });
  assert.deepEqual(await errorsOf(t, given, { builtins: [...builtins, check] }), [
    'apis[0].endpoints[0].path: is odd\\u000aindeed',
    'apis[0].endpoints[1].pth: unknown key, did you mean "path"?',
    'apis[0].endpoints[2].path: is odd\\u000aindeed',
  ]);
});

test('a check that fails is an error, without secrets, when the config has the right shape', async (t) => {
  const thrower = plugin({
    check: () => {
      throw new Error('cannot use s3cret\nat all');
    },
  });
  const given = { builtins: [...builtins, thrower], env: { V: 's3cret' } };
  assert.deepEqual(await errorsOf(t, config({ apis: [api({ headers: { a: '${V}' } })] }), given), [
    'settings.plugins: plugin "extra" failed to check the config: cannot use *** at all',
  ]);
  assert.deepEqual(await errorsOf(t, config({ apis: [api({ headers: { a: 1 } })] }), given), [
    'apis[0].headers.a: expected a string, found a number, write it in quotes',
  ]);
});

test('two owners of one key, mode, auth type or part of the ID are errors', async (t) => {
  const claims = plugin({
    keys: [
      configKey('api', 'url', Type.String()),
      configKey('endpoint', 'name', Type.String()),
      configKey('root', 'server.x', Type.String()),
      configKey('endpoint', 'path.to', Type.String()),
      configKey('server', 'rateLimit', Type.Object({})),
    ],
    modes: ['sync'],
    auth: { free: Type.Object({}) },
    identity: { url: () => 'x' },
  });
  assert.deepEqual(await errorsOf(t, config(), { builtins: [...builtins, claims] }), [
    'settings.plugins: plugin "extra" cannot own the auth type "free": it belongs to plugin "access"',
    'settings.plugins: plugin "extra" cannot own the mode "sync": it belongs to plugin "upstream"',
    'settings.plugins: plugin "extra" cannot own the config key api.url: it belongs to plugin "upstream"',
    'settings.plugins: plugin "extra" cannot own the config key endpoint.name: it belongs to the config file itself',
    'settings.plugins: plugin "extra" cannot own the config key server: it belongs to the config file itself',
    'settings.plugins: plugin "extra" cannot own the config key endpoint.path: it belongs to plugin "upstream"',
    'settings.plugins: plugin "extra" cannot own the config key server.rateLimit: another plugin owns keys inside it',
    'settings.plugins: plugin "extra" cannot own the part of the endpoint ID "url": it belongs to plugin "upstream"',
  ]);
});

test('what only TypeBox knows is reported in its words', async (t) => {
  const keys = [
    configKey(
      'server',
      'even',
      Type.Refine(
        Type.Integer(),
        (value) => value % 2 === 0,
        () => 'must be even',
      ),
    ),
    configKey('server', 'unique', Type.Array(Type.Integer(), { uniqueItems: true })),
  ];
  const errors = await errorsOf(t, config({ server: { even: 3, unique: [1, 1] } }), {
    builtins: [...builtins, plugin({ keys })],
  });
  assert.deepEqual(errors, [
    'server.even: must be even',
    'server.unique: is not allowed: it must not have duplicate items',
  ]);
});

test('what is loaded is frozen', async (t) => {
  const { config: loaded, endpoints } = await load(t, config());
  assert.ok(Object.isFrozen(loaded) && Object.isFrozen(loaded.apis));
  assert.ok(endpoints.every((one) => Object.isFrozen(one) && Object.isFrozen(one.block) && Object.isFrozen(one.auth)));
});
