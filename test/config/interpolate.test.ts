/** References to variables are replaced once, and nothing of them is shown. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in config files

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { interpolate } from '../../config/interpolate.ts';
import { exactNumber } from '../../lib/json/numbers.ts';
import type { CheckContext, Definition } from '../../plugins-sdk/define.ts';
import { anyCharacter } from '../support/any-character.ts';
import { api, builtins, config, endpoint, load, portKey, trustKey } from './support.ts';

function text(template: string, env: Record<string, string | undefined>): unknown {
  return interpolate(template, env).value;
}

test('references are replaced anywhere in a string, several times', () => {
  const env = { A: 'x', B_2: 'y', _c: 'z' };
  assert.equal(text('${A}', env), 'x');
  assert.equal(text('https://${A}.${B_2}/${_c}${A}', env), 'https://x.y/zx');
  assert.deepEqual(interpolate({ a: ['${A}', { b: '-${A}-' }], n: 1, t: true, z: null }, env).value, {
    a: ['x', { b: '-x-' }],
    n: 1,
    t: true,
    z: null,
  });
});

test('a doubled dollar sign is the literal reference', () => {
  const env = { A: 'x' };
  assert.equal(text('$${A}', env), '${A}');
  assert.equal(text('$$${A}', env), '$${A}');
  assert.equal(text('a $${A} ${A} $${', env), 'a ${A} x ${');
  assert.equal(text('$A $ $$ {A} $(A) ${A}', env), '$A $ $$ {A} $(A) x');
});

test('values are not interpolated again, and patterns in them mean nothing', () => {
  assert.equal(text('${A}', { A: '${B}', B: 'no' }), '${B}');
  assert.equal(text('<${A}>', { A: "$& $1 $' $` $$" }), "<$& $1 $' $` $$>");
  assert.equal(text('${A}', { A: '' }), '');
  assert.equal(text('${toString}', {}), 'unset-tostring.');
});

test('keys are not interpolated', () => {
  assert.deepEqual(interpolate({ '${A}': 1 }, { A: 'x' }).value, { '${A}': 1 });
});

test('numbers and booleans from variables are accepted where the schema wants them', async (t) => {
  const portOf = async (port: string, env: Record<string, string>) => {
    return portKey.in((await load(t, config({ server: { port } }), { env })).config);
  };
  assert.equal(await portOf('${P}', { P: '3000' }), 3000);
  assert.equal(await portOf('${P}${Q}', { P: '30', Q: '01' }), 3001);
  const trustOf = async (value: string) => {
    return trustKey.in(
      (await load(t, config({ server: { rateLimit: { trust: '${T}' } } }), { env: { T: value } })).config,
    );
  };
  assert.equal(await trustOf('true'), true);
  assert.equal(await trustOf('false'), false);
  assert.equal(await trustOf('2'), 2);
});

test('a string stays one where the schema allows both', async (t) => {
  const apis = [api({ endpoints: [endpoint({ parameters: [{ name: 'a', default: '${N}' }], path: '${N}' })] })];
  const { endpoints } = await load(t, config({ apis }), { env: { N: '5' } });
  assert.deepEqual(endpoints[0]?.block, { name: 'latest', parameters: [{ name: 'a', default: '5' }], path: '5' });
});

test('numbers from variables are converted inside lists and variants', async (t) => {
  const auth = [{ type: 'paid', network: '${N}', rpc: 'https://rpc' }];
  const { endpoints } = await load(t, config({ apis: [api({ auth })] }), { env: { N: '11155111' } });
  assert.deepEqual(endpoints[0]?.auth, [{ type: 'paid', network: 11155111, rpc: 'https://rpc' }]);
});

test('a check learns which values came from variables, or hold one that did', async (t) => {
  let asked: CheckContext | undefined;
  const spy: Definition = {
    name: 'spy',
    check: (context) => {
      asked = context;
      return [];
    },
    setup: () => ({}),
  };
  const apis = [
    api({
      headers: { 'X-Key': 'a${V}', 'x.y': '${V}', plain: '$${V}' },
      endpoints: [endpoint(), endpoint({ name: 'b', path: '/b', parameters: [{ name: 'p', fixed: '${V}' }] })],
    }),
  ];
  await load(t, config({ apis }), { env: { V: 'v' }, builtins: [...builtins, spy] });
  const { interpolated = () => false } = asked ?? {};
  assert.equal(interpolated('apis[0].endpoints[1].parameters[0].fixed'), true);
  assert.equal(interpolated('apis[0].headers.X-Key'), true);
  assert.equal(interpolated('apis[0].headers["x.y"]'), true);
  assert.equal(interpolated('apis[0].headers.plain'), false);
  assert.equal(interpolated('apis[0].endpoints[1].parameters[0]'), true);
  assert.equal(interpolated('apis[0].endpoints[0]'), false);
  assert.equal(interpolated('apis[0].endpoints[0].path'), false);
});

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/).filter((candidate) => !candidate.startsWith('SERVICE_'));
const awkward = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.constantFrom('${A}', '$${A}', '"', "'", '\n- a: b\n', '{a: [1', '*x', '&y', '# c', '!t', '$&', '\\', ': ', 'true'),
);

test('property: text without references is unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (any) => {
      const plain = any.replaceAll('${', '$ {');
      const { value, references, findings } = interpolate({ plain }, { A: 'x' });
      assert.deepEqual(value, { plain });
      assert.equal(references.size, 0);
      assert.equal(findings.length, 0);
    }),
  );
});

test('property: a text is the concatenation of its parts, whatever the values are', () => {
  const literal = awkward.map((any) => ({ written: any.replaceAll('${', () => '$${'), read: any, env: {} }));
  const reference = fc.tuple(name, awkward).map(([variable, value]) => {
    return { written: `\${${variable}}`, read: value, env: { [variable]: value } };
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(literal, reference), { maxLength: 8 }), (parts) => {
      const env: Record<string, string> = Object.assign({}, ...parts.map((part) => part.env));
      // A part that ends in $ would turn the next reference into a literal: that is the syntax.
      fc.pre(parts.every(({ written }, index) => index === parts.length - 1 || !written.endsWith('$')));
      // One name has one value.
      fc.pre(parts.every((part) => Object.entries(part.env).every(([key, value]) => env[key] === value)));
      const expected = parts.map((part) => part.read).join('');
      assert.equal(text(parts.map((part) => part.written).join(''), env), expected);
    }),
  );
});

test('property: no value changes the structure of a config', async (t) => {
  await fc.assert(
    fc.asyncProperty(awkward, async (value) => {
      const apis = [api({ headers: { a: '${V}', b: 'x${V}y' } })];
      const loaded = await load(t, config({ apis }), { env: { V: value } });
      assert.deepEqual(loaded.config.apis, [api({ headers: { a: value, b: `x${value}y` } })]);
    }),
    { numRuns: 40 },
  );
});

test('property: a number is taken over exactly or not at all', () => {
  fc.assert(
    fc.property(fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()), (value) => {
      assert.equal(exactNumber(JSON.stringify(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), (value) => {
      const survives = expand(String(Number(value))) === value;
      assert.equal(exactNumber(String(value)), survives ? Number(value) : undefined);
    }),
  );
});

/** The integer that JavaScript's text of a number stands for. */
function expand(text: string): bigint {
  const [mantissa = '', exponent = '0'] = text.split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length);
}
