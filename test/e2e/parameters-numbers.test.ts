/** A number reaches the upstream with each of its digits. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import fc from 'fast-check';
import { assertRefused, endpointUrl, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults, type RecordedRequest } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const places = ['query', 'path', 'header', 'cookie', 'body'] as const;
type Place = (typeof places)[number];

const taking = (place: Place, more: object = {}) => {
  return { path: '/x', method: 'POST', parameters: [{ name: 'n', in: place, ...more }] };
};

const change = `onBeforeApiCall({ endpoint, parameters }) {
  if (endpoint === 'changed') return { parameters: { n: parameters.n * 1e300 } };
  if (endpoint === 'copied') return { parameters: { ...parameters } };
  if (endpoint === 'within') return { parameters: { n: Array.isArray(parameters.n) ? [0] : { ...parameters.n, added: 1 } } };
  if (endpoint === 'returned') return { parameters: { ...parameters, m: Number.MAX_SAFE_INTEGER, kind: typeof parameters.n } };
}`;
const changer = pluginFile('changer', change);
const chooser = `export default { name: 'chooser', budget: 1000, setup: () => ({ hooks: {
  validate: ({ n }, { resolved }) => (resolved.name === 'chosen-by' ? { n } : undefined),
} }) };`;
const both = (one: object, other: object) => ({ parameters: [one, other] });

const endpoints = {
  everywhere: { path: '/x/{n}', method: 'POST', parameters: places.map((place) => ({ name: 'n', in: place })) },
  query: taking('query'),
  body: taking('body'),
  fixed: taking('query', { fixed: 7 }),
  'chosen-by': { ...taking('query'), path: '/chosen-by' },
  changed: { ...taking('query'), path: '/changed' },
  'config-numbers': both({ name: 'f', fixed: 1e21 }, { name: 'd', in: 'header', default: 1.5e-7 }),
  required: both({ name: 'n' }, { name: 'other', required: true }),
  returned: { path: '/returned', parameters: ['n', 'm', 'kind'].map((name) => ({ name })) },
  copied: { ...taking('body'), path: '/copied' },
  within: { ...taking('body'), path: '/within' },
  list: { path: '/list', parameters: [{ name: 'n', style: 'comma' }] },
  form: { path: '/form', method: 'POST', bodyType: 'form', parameters: [{ name: 'n', in: 'body' }] },
  cached: { path: '/cached', cache: { maxAge: 60_000 }, ...both({ name: 'n' }, { name: 'm' }) },
  'with-receipt': {
    receipt: true,
    encoding: { type: 'uint256', path: '$.one', times: '*' },
    parameters: [
      { name: 'n', in: 'body' },
      { name: 'toString', in: 'body' },
    ],
  },
  chosen: {
    ...taking('body', {
      schema: { anyOf: [{ enum: [1] }, { properties: { a: { items: { type: 'integer' } } }, type: 'object' }] },
    }),
    path: '/chosen',
  },
  integer: { parameters: [{ name: 'n', schema: { type: 'integer', maximum: 100 } }] },
  times: { encoding: { type: 'uint256', path: '$.one', times: '*' } },
  'pinned-times': { encoding: { type: 'uint256', path: '$.one', times: '3' } },
};

/** How the number that was sent reached the upstream. */
function received({ path, headers, body }: RecordedRequest, place: Place): string | undefined {
  const found = {
    query: () => decodeURIComponent(path.split('?n=')[1] ?? ''),
    path: () => decodeURIComponent(path.split('?')[0]?.split('/').at(-1) ?? ''),
    header: () => String(headers.n),
    cookie: () => headers.cookie?.split('n=')[1],
    body: () => /^\{"n":(.*)\}$/s.exec(body)?.[1],
  };
  return found[place]();
}

/** Sign, digits without zeros at the ends, and the power of ten of the first: equal for equal numbers only. */
function normalForm(literal: string): string {
  const [, sign, whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? assert.fail(`no number: ${literal}`);
  const digits = whole + fraction;
  const trimmed = digits.replace(/^0+/, '');
  if (trimmed === '') return '0';
  const magnitude = BigInt(power) + BigInt(whole.length - (digits.length - trimmed.length));
  return `${sign}${trimmed.replace(/0+$/, '')}e${magnitude}`;
}

describe('numbers in requests', async () => {
  const answers = { '*': faults.json({ one: 1 }) };
  const { upstream, service } = await served(suite, endpoints, { answers, sources: { changer, chooser } });

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const send = (endpoint: string, parameters: string, headers?: Record<string, string>) =>
    postText(endpointUrl(service, `api/${endpoint}`), `{"parameters":${parameters}}`, headers);
  const answered = async (endpoint: string, parameters: string) => {
    const response = await send(endpoint, parameters);
    assert.equal(response.status, 200, `${parameters}: ${await response.clone().text()}`);
    return upstream.requests.at(-1) ?? assert.fail('the upstream was not asked');
  };
  const refused = async (endpoint: string, parameters: string, error: string) => {
    await assertRefused(await send(endpoint, parameters), 400, error);
    assert.equal(upstream.requests.length, 0, 'before any call');
  };
  const inexact = (name: string) => `Invalid parameter: ${name} (send this number as a string)`;

  it('one that a double does not hold exactly is sent as it was written, in every place', async () => {
    const whole = ['1234567890123456789', '-1234567890123456789', '9007199254740993', `1${'0'.repeat(60)}1`];
    const parts = [
      '0.10000000000000000555',
      '3.14159265358979323846',
      '12345678901234567890e-5',
      '1.00000000000000000001E+3',
    ];
    const numbers = [...whole, ...parts, '1e-400', '4.9e-324', '1.7976931348623158e308'];
    for (const number of numbers) {
      const request = await answered('everywhere', `{"n":${number}}`);
      for (const place of places) assert.equal(received(request, place), number, place);
    }
  });

  it('the same digits in a string are sent as they are', async () => {
    const text = '1234567890123456789';
    const request = await answered('everywhere', `{"n":"${text}"}`);
    for (const place of places) assert.equal(received(request, place), place === 'body' ? `"${text}"` : text, place);
  });

  it('keeps its digits wherever it is nested in a body parameter, and in lists and forms', async () => {
    const big = '1234567890123456789';
    const texts = `["\\"${big}",": ${big}","\\\\"]`;
    const nested = [`[1,[2,{"a":[${big}]}]]`, `{"a":{"b":${big}},"c":"${big}"}`, texts];
    for (const value of nested) assert.equal(received(await answered('body', `{"n":${value}}`), 'body'), value, value);
    assert.equal((await answered('list', `{"n":[${big},1,0.5]}`)).path, `/list?n=${big},1,0.5`);
    assert.equal((await answered('form', `{"n":${big}}`)).body, `n=${big}`);
  });

  it('is a double for plugins, and keeps its digits where a plugin gives the same double back', async () => {
    const { path } = await answered('returned', '{"n":1234567890123456789,"m":9007199254740993}');
    assert.equal(path, '/returned?n=1234567890123456789&m=9007199254740991&kind=number');
  });

  it('keeps its digits beside what a plugin changes, and is 400 in a list of which a plugin changes the length', async () => {
    const negativeZero = '{"n":[-0.0,9007199254740993,-1e-400]}';
    assert.equal(received(await answered('copied', negativeZero), 'body'), '[0,9007199254740993,-1e-400]');
    const { body } = await answered('within', '{"n":{"id":9007199254740993,"list":[9007199254740993]}}');
    assert.equal(body, '{"n":{"id":9007199254740993,"list":[9007199254740993],"added":1}}');
    upstream.requests.length = 0;
    await refused('within', '{"n":[9007199254740993,2]}', inexact('n'));
  });

  it('fits a schema by its digits, not by the doubles beside it', async () => {
    for (const number of ['1.00000000000000000001', '99.99999999999999999999', '9007199254740993.5'])
      await refused('integer', `{"n":${number}}`, 'Invalid parameter: n (must be integer)');
    await refused('integer', '{"n":9007199254740993}', 'Invalid parameter: n (must be <= 100)');
    await refused('integer', `{"n":1.${'3'.repeat(4096)}}`, 'Invalid parameter: n (must have fewer digits)');
    await refused('chosen', '{"n":1.00000000000000000001}', 'Invalid parameter: n (must be one of 1)');
    await refused('chosen', '{"n":{"a":[-1e-400]}}', 'Invalid parameter: n (must be one of 1)');
    const whole = '{"a":[9007199254740993,-9007199254740993]}';
    assert.equal(received(await answered('chosen', `{"n":${whole}}`), 'body'), whole);
  });

  it('tells questions apart that are one for a double', async () => {
    const numbers = ['9007199254740992', '9007199254740993', '9007199254740993.0', '"9007199254740993"'];
    for (const number of numbers) await answered('cached', `{"n":${number}}`);
    assert.equal(upstream.requests.length, 4);
    for (const number of numbers) await answered('cached', `{"n":${number}}`);
    assert.equal(upstream.requests.length, 4, 'all are cached');
  });

  it('is 400 where an answer has a receipt, which signs doubles', async () => {
    for (const value of ['9007199254740993', '[{"a":9007199254740993}]'])
      await refused('with-receipt', `{"_times":1,"n":${value}}`, inexact('n'));
    await refused('with-receipt', '{"n":1,"_times":9007199254740993}', inexact('_times'));
    assert.equal((await send('with-receipt', '{"n":9007199254740992,"_times":"9007199254740993"}')).status, 200);
  });

  it('what is not used is ignored: undeclared names, fixed values, reserved parameters that are pinned', async () => {
    const big = '1234567890123456789';
    await answered('query', `{"other":${big},"n":1}`);
    assert.equal((await answered('fixed', `{"n":${big}}`)).path, '/x?n=7');
    await answered('query', `{"n":1,"_times":${big},"_type":${big}}`);
    assert.equal((await answered('chosen-by', `{"n":${big},"toString":${big}}`)).path, `/chosen-by?n=${big}`);
    await verifyEncoded(await send('pinned-times', `{"_times":${big}}`), TEST_ADDRESS);
    const beside = `{"a":${big},"parameters":{"n":1},"b":[${big}]}`;
    assert.equal((await postText(endpointUrl(service, 'api/query'), beside)).status, 200);
  });

  it('of duplicate keys the last counts, at any depth', async () => {
    const big = '1234567890123456789';
    assert.equal((await answered('query', `{"n":${big},"n":5}`)).path, '/x?n=5');
    assert.equal((await answered('query', `{"n":${big},"\\u006e":6}`)).path, '/x?n=6');
    assert.equal(received(await answered('body', `{"n":{"a":${big},"a":5}}`), 'body'), '{"a":5}');
    assert.equal((await answered('query', `{"n":5,"n":${big}}`)).path, `/x?n=${big}`);
    assert.equal((await answered('query', `{"n":5,"\\u006e":${big}}`)).path, `/x?n=${big}`);
    const url = endpointUrl(service, 'api/query');
    for (const [first, last] of [
      [big, '5'],
      ['5', big],
    ]) {
      const body = `{"parameters":{"n":${first}},"parameters":{"n":${last}}}`;
      assert.equal((await postText(url, body)).status, 200);
      assert.equal(upstream.requests.at(-1)?.path, `/x?n=${last}`);
    }
  });

  it('a missing parameter is said first', async () => {
    await refused('required', '{"n":1234567890123456789}', 'Missing required parameter(s): other');
  });

  it('is seen in a body of unknown length, too', async () => {
    const body = new Blob(['{"parameters":{"n":', '1234567890123456789}}']).stream();
    const init = { method: 'POST', headers: JSON_HEADERS, body, duplex: 'half' } as const;
    assert.equal((await fetch(endpointUrl(service, 'api/query'), init)).status, 200);
    assert.equal(upstream.requests.at(-1)?.path, '/x?n=1234567890123456789');
  });

  it('`_times` keeps its digits', async () => {
    for (const times of ['1e-400', '[9007199254740993]'])
      await refused('times', `{"_times":${times}}`, 'Invalid `_times` request parameter');
    const coded = async (times: string) => {
      const { data } = await verifyEncoded(await send('times', `{"_times":${times}}`), TEST_ADDRESS);
      return AbiCoder.defaultAbiCoder().decode(['uint256'], data)[0];
    };
    assert.equal(await coded('"9007199254740993"'), 9007199254740993n);
    assert.equal(await coded('9007199254740992'), 9007199254740992n);
    assert.equal(await coded('9007199254740993'), 9007199254740993n);
    assert.equal(await coded('9007199254740993.00000000000000000001'), 9007199254740993n);
    assert.equal(await coded('1e21'), 10n ** 21n);
  });

  it('reaches path, query, header and cookie in plain digits', async () => {
    const texts: [string, string][] = [
      ['1e21', '1000000000000000000000'],
      ['-1e21', '-1000000000000000000000'],
      ['1.5e21', '1500000000000000000000'],
      ['1e-7', '0.0000001'],
      ['-1.25e-7', '-0.000000125'],
      ['1E+2', '100'],
      ['100000000000000000000', '100000000000000000000'],
      ['0.1', '0.1'],
      ['1.10', '1.1'],
      ['-0', '0'],
      ['-0.0e5', '0'],
      ['1.7976931348623157e308', `17976931348623157${'0'.repeat(292)}`],
      ['5e-324', `0.${'0'.repeat(323)}5`],
      ['-2.2250738585072014e-308', `-0.${'0'.repeat(307)}22250738585072014`],
    ];
    for (const [number, text] of texts) {
      const request = await answered('everywhere', `{"n":${number}}`);
      for (const place of ['query', 'path', 'header', 'cookie'] as const)
        assert.equal(received(request, place), text, `${number} in a ${place}`);
    }
  });

  it('so do those of the config and those that a plugin made', async () => {
    const { path, headers } = await answered('config-numbers', '{}');
    assert.deepEqual([path, headers.d], ['/config-numbers?f=1000000000000000000000', '0.00000015']);
    assert.equal((await answered('changed', '{"n":1}')).path, `/changed?n=1${'0'.repeat(300)}`);
  });

  const digits = (max: number) => fc.array(fc.constantFrom(...'0123456789'), { minLength: 1, maxLength: max });
  const zeroOr = <T>(given: fc.Arbitrary<T>, text: (value: T) => string) => fc.oneof(fc.constant(''), given.map(text));
  const whole = fc.oneof(
    fc.constant('0'),
    fc.tuple(fc.constantFrom(...'123456789'), digits(25)).map(([first, rest]) => first + rest.join('')),
    fc.bigInt({ min: 2n ** 53n - 9n, max: 2n ** 53n + 9n }).map(String),
  );
  const power = fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.integer({ min: 0, max: 330 }));
  const fraction = zeroOr(digits(25), (all) => `.${all.join('')}`);
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      whole,
      fraction,
      zeroOr(power, (parts) => parts.join('')),
    )
    .map((parts) => parts.join(''));

  it('any number that is not infinite reaches the upstream with the value that was sent', async () => {
    const literal = fc.oneof(number, fc.double({ noNaN: true, noDefaultInfinity: true }).map(String));
    await fc.assert(
      fc.asyncProperty(literal, async (text) => {
        const before = upstream.requests.length;
        const response = await send('everywhere', `{"n":${text}}`);
        const body = await response.text();
        if (!Number.isFinite(Number(text))) {
          assert.deepEqual([response.status, body], [400, '{"error":"Request body must be valid JSON"}']);
          assert.equal(upstream.requests.length, before);
          return;
        }
        assert.equal(response.status, 200, body);
        for (const place of places) {
          const reached = received(upstream.requests.at(-1) ?? assert.fail(), place) ?? '';
          assert.equal(normalForm(reached), normalForm(text));
          // What a double holds is in plain digits, and anything else as it was sent.
          if (place !== 'body' && normalForm(String(Number(text))) === normalForm(text))
            assert.match(reached, /^-?\d+(\.\d+)?$/);
          else if (place !== 'body') assert.equal(reached, text);
        }
      }),
      { numRuns: 100 },
    );
  });
});
