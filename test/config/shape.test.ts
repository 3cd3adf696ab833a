/** Each wrong shape of a config has its words, with the path and what would be right. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configKey, type Definition, Type } from '../../plugins-sdk/index.ts';
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

test('with one auth type its errors are as clear', async (t) => {
  const one = [...builtins.filter(({ name }) => name !== 'access'), plugin({ auth: { free: Type.Object({}) } })];
  const errors = await errorsOf(t, config({ apis: [api({ auth: { type: 'fre', x: 1 } })] }), { builtins: one });
  assert.deepEqual(errors, ['apis[0].auth.type: expected "free"']);
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

test('a function of a plugin that fails is an error that names both, when the config has the right shape', async (t) => {
  const fail = () => {
    throw new Error('cannot use s3cret');
  };
  const thrower = plugin({ budget: fail, isAnnounced: fail, behindProxy: fail });
  const files = { 'p.mjs': 'export default { name: "p", budget: () => "much", setup: () => ({}) };' };
  const given = { builtins: [...builtins, thrower], files, env: { V: 's3cret' } };
  const withHeader = (a: unknown) =>
    config({ settings: { plugins: [{ source: './p.mjs' }] }, apis: [api({ headers: { a } })] });
  assert.deepEqual(await errorsOf(t, withHeader('${V}'), given), [
    ...['isAnnounced', 'behindProxy', 'budget'].map(
      (member) => `settings.plugins: plugin "extra": its "${member}" fails: cannot use ***`,
    ),
    'settings.plugins[0]: plugin "p": its "budget" fails: what "budget" returned: expected "none" or a number, found a string',
  ]);
  assert.deepEqual(await errorsOf(t, withHeader(1), given), [
    'apis[0].headers.a: expected a string, found a number, write it in quotes',
  ]);
});

test('a secret is hidden in any form, and whole where another one begins it', async (t) => {
  const env = {
    A: 'abc',
    B: 'zq',
    C: 's3cret',
    D: 's3cret-and-more',
    E: 'p/q r',
    F: 'say "hi"',
    G: 'sevench',
    H: 'eightchr',
  };
  const headers = Object.fromEntries(Object.keys(env).map((name) => [name, `\${${name}}`]));
  const given = config({ apis: [api({ headers })] });
  const saying = (message: string) => () => {
    throw new Error(message);
  };
  const thrower = plugin({ check: saying('abc zq s3cret-and-more s3cret p%2Fq%20r say \\"hi\\" eightchr') });
  assert.deepEqual(await errorsOf(t, given, { builtins: [...builtins, thrower], env }), [
    'settings.plugins: plugin "extra" failed to check the config: *** zq *** *** *** *** ***',
  ]);
  // Of our own texts only what is long enough to be a secret.
  const finder = plugin({
    check: () => [{ level: 'error', path: 'apis', message: 'sevench eightchr s3cret-and-more' }],
  });
  assert.deepEqual(await errorsOf(t, given, { builtins: [...builtins, finder], env }), ['apis: sevench *** ***']);
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
    'settings.plugins: plugin "extra" cannot own the config key server.rateLimit.max: it belongs to plugin "limits"',
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
