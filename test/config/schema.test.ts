/** The published schema accepts what the loader accepts. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import { composeSchema } from '../../config/index.ts';
import { optionalKey } from '../../plugins-sdk/config-key.ts';
import { configKey, type Definition, Type } from '../../plugins-sdk/index.ts';
import { api, builtins, config, endpoint, errorsOf, load } from './support.ts';

const schema = composeSchema(builtins);

test('the published schema is plain JSON with a title and a dialect', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
  assert.equal(Reflect.get(schema, '$schema'), 'https://json-schema.org/draft/2020-12/schema');
  assert.deepEqual(Reflect.get(schema, 'required'), ['version', 'apis']);
  assert.ok(!JSON.stringify(schema).includes('~'));
});

test('it knows the keys of the plugins and refuses others', () => {
  assert.ok(Check(schema, config()));
  assert.ok(!Check(schema, config({ extra: 1 })));
  assert.ok(!Check(schema, config({ server: { prot: 1 } })));
  assert.ok(!Check(schema, config({ server: { port: 'x' } })));
  assert.ok(!Check(schema, config({ apis: [api({ endpoints: [endpoint({ mode: 'x' })] })] })));
  assert.ok(!Check(schema, config({ apis: [api({ auth: [] })] })));
  assert.ok(!Check(schema, config({ apis: [api({ auth: { type: 'free', keys: [] } })] })));
  assert.ok(!Check(composeSchema([]), config()));
});

test('variables may stand where numbers, booleans and certain texts are wanted', () => {
  const given = config({
    version: '${V}',
    server: { port: '${P}', rateLimit: { trust: '${T}' } },
    settings: {
      proof: { type: 'gateway', gatewayUrl: 'https${S}' },
      plugins: [{ source: './x.ts', timeout: '${T}', enabled: '${E}' }],
    },
    apis: [
      api({
        auth: { type: '${A}', network: '${N}', rpc: '${R}' },
        endpoints: [endpoint({ mode: '${M}', cache: { maxAge: '${C}' } })],
      }),
    ],
  });
  assert.ok(Check(schema, given));
});

test('a description stays in its place, and a refinement is left out', () => {
  const odd = Type.Refine(Type.Integer({ description: 'an odd number' }), (value) => value % 2 === 1);
  const extra: Definition = {
    name: 'extra',
    keys: [configKey('server', 'odd', Type.Optional(odd))],
    setup: () => ({}),
  };
  const server = JSON.parse(JSON.stringify(composeSchema([...builtins, extra]))).properties.server;
  assert.deepEqual(server.properties.odd, {
    description: 'an odd number',
    anyOf: [{ type: 'integer' }, { $ref: '#/$defs/variable' }],
  });
});

/** Rarely what the loader refuses: a config has many parts, and a third of all configs is to be accepted. */
const mostly = <T, U>(sound: fc.Arbitrary<T>, refused: fc.Arbitrary<U>) =>
  fc.oneof({ weight: 30, arbitrary: sound }, { weight: 1, arbitrary: refused });
const name = mostly(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ maxLength: 3 }));
const maybe = <T>(key: string, value: fc.Arbitrary<T>) =>
  fc.option(
    value.map((inner) => ({ [key]: inner })),
    { nil: {} },
  );
const merged = (...parts: fc.Arbitrary<object>[]) =>
  fc.tuple(...parts).map((list) => Object.assign({}, ...list) as object);
const orVariable = <T>(value: fc.Arbitrary<T>, variable: string) => fc.oneof(value, fc.constant(`\${${variable}}`));
/** `fc.webUrl` sets up half a second for all characters of a path. */
const url = fc.webAuthority().map((authority) => `https://${authority}/v1`);
const env = { INT: '5', BOOL: 'true', TEXT: 'text', MODE: 'async', URL: 'https://x', ZERO: '0' };

const auth = fc.oneof(
  fc.constant({ type: 'free' }),
  fc.record({ type: fc.constant('apiKey'), keys: fc.array(orVariable(name, 'TEXT'), { minLength: 1, maxLength: 3 }) }),
  fc.record({
    type: fc.constant('paid'),
    network: orVariable(fc.integer({ min: 0 }), 'INT'),
    rpc: orVariable(url, 'URL'),
  }),
);
const gateway = { type: 'gateway', gatewayUrl: '${URL}' };
const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean());
const anyEndpoint = merged(
  fc.record({ name, path: orVariable(fc.string(), 'TEXT') }),
  maybe('mode', mostly(fc.constantFrom('sync', 'async', '${MODE}'), fc.constant('other'))),
  maybe('method', mostly(fc.constantFrom('GET', 'POST'), fc.constant('get'))),
  maybe('auth', mostly(fc.oneof(auth, fc.array(auth, { minLength: 1, maxLength: 2 })), fc.constant([]))),
  maybe(
    'cache',
    fc.record({
      maxAge: mostly(orVariable(fc.integer({ min: 1 }), 'INT'), fc.constantFrom(0, '${ZERO}', '${TEXT}')),
    }),
  ),
  maybe(
    'parameters',
    fc.array(merged(fc.record({ name }), maybe('fixed', scalar), maybe('secret', fc.constantFrom(true, '${BOOL}'))), {
      maxLength: 2,
    }),
  ),
  mostly(fc.constant({}), fc.constant({ surplus: 1 })),
);
const anyConfig = merged(
  fc.record({
    version: mostly(fc.constantFrom('1.0', '1.1'), fc.constantFrom('2.13', '3.1', '1')),
    apis: fc.array(
      merged(
        fc.record({ name, url, endpoints: fc.array(anyEndpoint, { minLength: 1, maxLength: 3 }) }),
        maybe('auth', auth),
        maybe('headers', fc.dictionary(name, fc.string())),
      ),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  maybe('server', maybe('port', mostly(orVariable(fc.nat(65_535), 'INT'), fc.constantFrom(-1, 65_536)))),
  maybe('settings', maybe('proof', mostly(fc.constantFrom('none', gateway), fc.constantFrom('nope', '${TEXT}')))),
);

test('property: what the loader accepts, the published schema accepts', async (t) => {
  const seen = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(anyConfig, async (given) => {
      const errors = await errorsOf(t, JSON.stringify(given), { env });
      if (errors.length === 0) assert.ok(Check(schema, given));
      seen[errors.length === 0 ? 'accepted' : 'refused']++;
    }),
    { numRuns: 150 },
  );
  assert.ok(seen.accepted > 10 && seen.refused > 10, JSON.stringify(seen));
});

test('a key that no plugin of the config owns is checked where it is read', async (t) => {
  const key = optionalKey('endpoint', 'cache', Type.Object({ seconds: Type.Number() }));
  const firstOf = async (value: object, owned: readonly Definition[]) => {
    const { endpoints } = await load(t, config({ apis: [api({ endpoints: [endpoint({ cache: value })] })] }), {
      builtins: owned,
    });
    const [first] = endpoints;
    assert.ok(first !== undefined);
    return first;
  };
  const others = builtins.filter(({ name }) => name !== 'cache');
  const owner: Definition = { name: 'owner', keys: [key], setup: () => ({}) };
  assert.deepEqual(key.of(await firstOf({ seconds: 5 }, [...others, owner])), { seconds: 5 });
  // Another config had the key; the next one does not.
  const next = await firstOf({ maxAge: 5 }, builtins);
  assert.throws(() => key.of(next), { message: 'config key cache was not validated' });
});
