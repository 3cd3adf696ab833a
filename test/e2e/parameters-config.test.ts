/** A wrong definition of a parameter is an error of the config. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { errorsOf, loadObject, warningsOf } from '../support/config.ts';

type Block = Readonly<Record<string, unknown>>;

const AT = 'apis[0].endpoints[0]';

const withParameters = (parameters: readonly Block[], endpoint: Block = {}, more: Block = {}) =>
  oneApi('https://upstream.example', { e: { parameters, ...endpoint } }, more);

const errors = (parameters: readonly Block[], endpoint: Block = {}, more: Block = {}) =>
  errorsOf(withParameters(parameters, endpoint, more));

describe('parameter definitions (specification: Parameter definition; decisions, Configuration)', () => {
  it('`required: true` together with a `default` is an error (rule 2)', async () => {
    assert.deepEqual(await errors([{ name: 'a', required: true, default: 'x' }]), [
      `${AT}.parameters[0]: is both required and has a default: choose one`,
    ]);
    assert.equal((await errors([{ name: 'a', required: true, default: '' }])).length, 1);
    assert.deepEqual(await errors([{ name: 'a', required: false, default: 'x' }]), []);
  });

  it('`required: true` together with `fixed` is allowed (decisions, Since the third release)', async () => {
    for (const required of [true, false]) assert.deepEqual(await errors([{ name: 'a', required, fixed: 'x' }]), []);
  });

  it('fixed and default are strings, numbers or booleans', async () => {
    for (const value of ['x', '', 1.5, true, false]) {
      assert.deepEqual(await errors([{ name: 'a', fixed: value }]), []);
      assert.deepEqual(await errors([{ name: 'a', default: value }]), []);
    }
    for (const value of [null, [1], { a: 1 }]) {
      assert.equal((await errors([{ name: 'a', fixed: value }])).length, 1);
      assert.equal((await errors([{ name: 'a', default: value }])).length, 1);
    }
  });

  it('a name is needed, `in` is one of five places, unknown keys name the nearest known one', async () => {
    for (const place of ['query', 'header', 'cookie', 'body']) {
      assert.deepEqual(await errors([{ name: 'a', in: place }]), []);
    }
    assert.equal((await errors([{ in: 'query' }])).length, 1);
    assert.equal((await errors([{ name: '' }])).length, 1);
    const [wrongPlace = ''] = await errors([{ name: 'a', in: 'form' }]);
    assert.match(wrongPlace, /^apis\[0\]\.endpoints\[0\]\.parameters\[0\]\.in: /);
    const [unknown = ''] = await errors([{ name: 'a', requird: true }]);
    assert.match(unknown, /^apis\[0\]\.endpoints\[0\]\.parameters\[0\]\.requird: .*required/);
  });

  it('reserved request parameters cannot be declared', async () => {
    assert.deepEqual(
      await errors([{ name: '_type' }, { name: '_path', in: 'body' }, { name: '_times', in: 'header' }]),
      [
        `${AT}.parameters[0].name: "_type" is a reserved parameter`,
        `${AT}.parameters[1].name: "_path" is a reserved parameter`,
        `${AT}.parameters[2].name: "_times" is a reserved parameter`,
      ],
    );
    assert.deepEqual(await errors([{ name: '_typ' }, { name: '_type_' }]), []);
  });

  it('two parameters of one name are allowed in two places, not in one; header names have no case', async () => {
    assert.deepEqual(await errors([{ name: 'a' }, { name: 'a', in: 'body' }, { name: 'A' }]), []);
    assert.deepEqual(await errors([{ name: 'a' }, { name: 'a', in: 'query' }]), [
      `${AT}.parameters[1]: there are two query parameters named "a"`,
    ]);
    assert.deepEqual(
      await errors([
        { name: 'X-A', in: 'header' },
        { name: 'x-a', in: 'header' },
      ]),
      [`${AT}.parameters[1]: there are two header parameters named "x-a"`],
    );
  });

  it('placeholders of the path and path parameters belong together', async () => {
    assert.deepEqual(await errors([{ name: 'id', in: 'path' }], { path: '/x' }), [
      `${AT}.parameters[0].name: the path has no placeholder {id}`,
    ]);
    assert.deepEqual(await errors([{ name: 'id' }], { path: '/x/{id}/{other}' }), [
      `${AT}.path: the placeholder {id} has no parameter with in: path`,
      `${AT}.path: the placeholder {other} has no parameter with in: path`,
    ]);
    assert.deepEqual(await errors([{ name: 'id', in: 'path' }], { path: '/x/{id}?again={id}' }), []);
  });

  it('`header` parameters and API headers cannot be those of the connection (decisions, Configuration)', async () => {
    const reserved = ['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'TE'];
    for (const name of reserved.flatMap((word) => [word, word.toLowerCase(), word.toUpperCase()])) {
      assert.deepEqual(await errors([{ name, in: 'header' }]), [
        `${AT}.parameters[0].name: the header ${name} cannot be configured`,
      ]);
      assert.deepEqual(await errors([], {}, { api: { headers: { [name]: 'x' } } }), [
        `apis[0].headers.${name}: the header ${name} cannot be configured`,
      ]);
      assert.deepEqual(await errors([{ name, in: 'query' }]), []);
    }
  });

  it('headers that the HTTP client refuses to send are errors, too', async () => {
    assert.equal((await errors([{ name: 'Expect', in: 'header' }])).length, 1);
    assert.equal((await errors([{ name: 'Keep-Alive', in: 'header' }])).length, 1);
  });

  it('names that no header or cookie can have are errors', async () => {
    for (const name of ['a b', 'a:b', 'ü', 'a\r\nb', 'a=b;']) {
      assert.equal((await errors([{ name, in: 'header' }])).length, 1, name);
      assert.equal((await errors([{ name, in: 'cookie' }])).length, 1, name);
    }
  });

  it('fixed and default values that cannot be sent are errors at start-up, not at each request', async () => {
    const bad: [Block, string][] = [
      [{ name: 'h', in: 'header', fixed: 'a\nb' }, 'fixed: cannot be sent as header'],
      [{ name: 'h', in: 'header', default: '€' }, 'default: cannot be sent as header'],
      [{ name: 'c', in: 'cookie', fixed: 'a;b' }, 'fixed: cannot be sent as cookie'],
      [{ name: 'id', in: 'path', fixed: '..' }, 'fixed: cannot be sent as path'],
      [{ name: 'id', in: 'path', default: '' }, 'default: cannot be sent as path'],
    ];
    for (const [parameter, text] of bad) {
      const path = parameter.in === 'path' ? '/x/{id}/y' : '/x';
      assert.deepEqual(await errors([{ name: 'other', fixed: 'y' }, parameter], { path }), [
        `${AT}.parameters[1].${text}`,
      ]);
    }
    assert.deepEqual(await errors([{ name: 'id', in: 'path', fixed: '' }], { path: '/x/a{id}' }), []);
  });

  it('a value from a variable that cannot be sent is not shown', async () => {
    const config = withParameters([{ name: 'h', in: 'header', fixed: '${TOKEN}' }]);
    assert.deepEqual(await errorsOf(config, { TOKEN: 'se\ncret' }), [
      `${AT}.parameters[0].fixed: cannot be sent as header`,
    ]);
  });

  it('cookie parameters need the Cookie header for themselves', async () => {
    const cookie = { name: 'sid', in: 'cookie' };
    assert.deepEqual(await errors([cookie, { name: 'Cookie', in: 'header' }]), [
      `${AT}.parameters[1]: a header named Cookie leaves no room for parameters with in: cookie`,
    ]);
    const taken = withParameters([cookie], {}, { api: { headers: { COOKIE: 'a=b' } } });
    assert.deepEqual(await warningsOf(taken), [
      `${AT}.parameters[0]: is never sent: the headers of the API hold Cookie`,
    ]);
  });

  const attestors = ['0x70997970C51812dc3A010C7d01b50e0d17dc79C8'];
  const settings = { proof: { type: 'reclaim', gatewayUrl: 'https://gateway.example', attestors } };

  it('`responseMatches` beside a secret query, path or body parameter is an error with settings.proof, else a warning', async () => {
    const responseMatches = [{ type: 'regex', value: 'x' }];
    const shown = 'the proof would show the secret parameter "key"';
    for (const place of ['query', 'path', 'body']) {
      const endpoint = { path: place === 'path' ? '/x/{key}' : '/x', method: 'POST', responseMatches };
      const secret = { name: 'key', in: place, secret: true };
      assert.deepEqual(await errors([secret], endpoint, { settings }), [`${AT}.responseMatches: ${shown}`]);
      for (const more of [{}, { settings: { proof: 'none' } }])
        assert.deepEqual(await warningsOf(withParameters([secret], endpoint, more)), [
          `${AT}.responseMatches: with settings.proof ${shown}`,
        ]);
      assert.deepEqual(await errors([secret], { ...endpoint, responseMatches: [] }, { settings }), []);
      assert.deepEqual(await errors([{ ...secret, secret: false }], endpoint, { settings }), []);
    }
    for (const place of ['header', 'cookie']) {
      const given = withParameters([{ name: 'key', in: place, secret: true }], { responseMatches });
      assert.deepEqual(await warningsOf(given), []);
    }
  });

  it('a `fixed: ${VAR}` is secret by itself, there too (rule 3)', async () => {
    const endpoint = { responseMatches: [{ type: 'regex', value: 'x' }] };
    const config = withParameters([{ name: 'key', fixed: 'k-${KEY}' }], endpoint, { settings });
    assert.deepEqual(await errorsOf(config, { KEY: 'k' }), [
      `${AT}.responseMatches: the proof would show the secret parameter "key"`,
    ]);
  });

  it('a responseMatches entry is `regex`; a pattern that JavaScript does not read is a warning', async () => {
    const matches = ['"price":(?<price>\\d+)', '(', '(?i)price'].map((value) => ({ type: 'regex', value }));
    const cure = 'is no regular expression of JavaScript: make sure that the attestor reads it';
    assert.deepEqual(await warningsOf(withParameters([], { responseMatches: matches }, { settings })), [
      `${AT}.responseMatches[1].value: ${cure}`,
      `${AT}.responseMatches[2].value: ${cure}`,
    ]);
    const wrong = [
      { type: 'contains', value: 'x' },
      { type: 'regex' },
      { type: 'regex', value: '' },
      { type: 'regex', value: 'x', flags: 'i' },
    ];
    for (const match of wrong)
      assert.equal((await errors([], { responseMatches: [match] })).length, 1, JSON.stringify(match));
  });

  it('responseMatches with DELETE is a warning (decisions, Configuration)', async () => {
    const responseMatches = [{ type: 'regex', value: 'x' }];
    assert.deepEqual(await warningsOf(withParameters([], { method: 'DELETE', responseMatches })), [
      `${AT}.responseMatches: has no effect with the method DELETE`,
    ]);
    assert.deepEqual(await warningsOf(withParameters([], { method: 'POST', responseMatches })), []);
  });

  it('a variable in a `default` is a start-up warning unless the parameter is secret', async () => {
    const warned = `${AT}.parameters[0].default: contains a variable: its value enters the endpoint ID, and --explain shows it`;
    const load = async (parameter: Block) => {
      const { warnings } = await loadObject(withParameters([parameter]), { V: 'v' });
      return warnings.map(({ path, message }) => `${path}: ${message}`);
    };
    assert.deepEqual(await load({ name: 'a', default: '${V}' }), [warned]);
    assert.deepEqual(await load({ name: 'a', default: '${V}', secret: true }), []);
  });
});
