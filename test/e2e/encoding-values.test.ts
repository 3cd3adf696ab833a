/** Pinned encodings sign each digit of the upstream's value. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder, encodeBytes32String, hexlify, toUtf8Bytes, zeroPadBytes } from 'ethers';
import { oneApi } from '../support/answers.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const coder = AbiCoder.defaultAbiCoder();
const ADDRESS = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';

/** Replaces the answer by one with the same numbers. */
const replacer = pluginFile(
  'replacer',
  `onAfterApiCall({ api, response }) { if (api === 'replaced') return { data: response.data }; },
   onBeforeSign({ data }) { note('signed data', data); }`,
);

/** One pinned endpoint per type; the request chooses the answer, the operator the encoding. */
const encodings = {
  ...Object.fromEntries(
    [
      'int256',
      'uint256',
      'int8',
      'uint8',
      'int64',
      'bool',
      'bytes32',
      'bytes4',
      'bytes1',
      'address',
      'string',
      'bytes',
    ].map((type) => [type, { type, path: '$.v' }]),
  ),
  e18: { type: 'int256', path: '$.v', times: '1e18' },
  'e-6': { type: 'int256', path: '$.v', times: '1e-6' },
  negative: { type: 'int256', path: '$.v', times: '-0.5' },
  e77: { type: 'int256', path: '$.v', times: '1e77' },
  list: { type: 'int256,bool,string,uint8', path: "$.v,$['a,b'],$.s,$.n[-1:]" },
  times: { type: 'int256,uint256,int8', path: '$.v,$.v,$.v', times: '100,,10' },
  single: { type: 'int256,uint256', path: '$.v,$.w', times: '1e2' },
  filter: { type: 'uint256', path: '$.list[?(@.ok && @.v > 1)].v', times: '10' },
  root: { type: 'int256', path: '$' },
};

describe('pinned encodings', async () => {
  let answer = '';

  const upstream = await upstreamFor(suite);
  upstream.on('*', (req, res, recorded) => faults.text(answer)(req, res, recorded));
  const { files, plugins } = pluginFiles({ replacer });
  const endpoints = Object.fromEntries(Object.entries(encodings).map(([name, encoding]) => [name, { encoding }]));
  const { apis } = oneApi(upstream.url, endpoints);
  const replaced = apis.map((api) => ({ ...api, name: 'replaced', url: `${upstream.url}/replaced` }));
  const service = await serviceFor(suite, { settings: { plugins }, apis: [...apis, ...replaced] }, { files });

  /** The values that ethers decodes from the signed data. */
  const decoded = async (endpoint: string, text: string, types: string[], api = 'api', parameters: unknown = {}) => {
    answer = text;
    const { data } = await verifyEncoded(await service.post(`${api}/${endpoint}`, parameters), TEST_ADDRESS);
    assert.equal(coder.encode(types, coder.decode(types, data)), data, 'the canonical encoding');
    return coder.decode(types, data).toArray();
  };
  const number = async (endpoint: string, token: string, api = 'api') =>
    (await decoded(endpoint, `{"v":${token}}`, ['int256'], api))[0];
  const refuse = async (endpoint: string, text: string, error = 'API call failed') => {
    answer = text;
    await assertRefused(await service.post(`api/${endpoint}`), 502, error);
  };

  it('integers reach the signature digit by digit', async () => {
    const exact: [string, string, bigint][] = [
      ['int256', '12345678901234567891', 12345678901234567891n],
      ['int256', '-12345678901234567891', -12345678901234567891n],
      ['int256', '9007199254740993', 9007199254740993n],
      ['e18', '0.1234567890123456789', 123456789012345678n],
      ['e18', '1234567.123456789012345678', 1234567123456789012345678n],
      ['e18', '1e-7', 100000000000n],
      ['e18', '1E+2', 100n * 10n ** 18n],
      ['e18', '-0', 0n],
      ['e18', '-0.0', 0n],
      ['e18', '0.1', 10n ** 17n],
      ['e18', '1e-18', 1n],
      ['e18', '1e-19', 0n],
      ['e18', '-1e-19', 0n],
      ['e-6', '1999999', 1n],
      ['e-6', '-1999999', -1n],
      ['e-6', '1e6', 1n],
      ['e-6', '12345678901234567891999999', 12345678901234567891n],
      ['negative', '3', -1n],
      ['negative', '-3', 1n],
      ['e77', '5', 5n * 10n ** 76n * 10n],
      ['int256', '1e20', 10n ** 20n],
      ['int256', '123456789e-3', 123456n],
    ];
    for (const [endpoint, token, value] of exact) {
      if (endpoint === 'e77') continue;
      assert.equal(await number(endpoint, token), value, `${token} at ${endpoint}`);
      assert.equal(await number(endpoint, `"${token}"`), value, `"${token}" at ${endpoint}`);
    }
    assert.equal(await number('e77', '0.5'), 5n * 10n ** 76n);
  });

  it('texts of 78 digits, signs and hex are numbers, too', async () => {
    const max = 2n ** 255n - 1n;
    assert.equal(max.toString().length, 77);
    assert.equal(await number('int256', `"${max}"`), max);
    assert.equal(await number('int256', String(max)), max);
    assert.equal(await number('int256', String(-max - 1n)), -max - 1n);
    assert.deepEqual(await decoded('uint256', `{"v":"${2n ** 256n - 1n}"}`, ['uint256']), [2n ** 256n - 1n]);
    assert.equal((2n ** 256n - 1n).toString().length, 78);
    assert.deepEqual(await decoded('uint256', `{"v":${2n ** 256n - 1n}}`, ['uint256']), [2n ** 256n - 1n]);
    assert.equal(await number('int256', '"0xff"'), 255n);
    assert.equal(await number('int256', '"+7"'), 7n);
  });

  it('a fraction is truncated toward zero without `times` (rule 2)', async () => {
    for (const [token, value] of [
      ['1.9', 1n],
      ['-1.9', -1n],
      ['0.999999999999999999999', 0n],
      ['-0.5', 0n],
    ] as const) {
      assert.equal(await number('int256', token), value, token);
    }
  });

  it('what does not fit the type is 502', async () => {
    await refuse('int256', `{"v":${2n ** 255n}}`);
    await refuse('int256', `{"v":${-(2n ** 255n) - 1n}}`);
    await refuse('uint256', `{"v":${2n ** 256n}}`);
    await refuse('uint256', '{"v":-1}');
    await refuse('int8', '{"v":128}');
    await refuse('uint8', '{"v":256}');
    await refuse('e77', '{"v":10}');
    await refuse('int256', '{"v":1e308}');
    await refuse('int256', '{"v":"1e999999999"}');
    for (const value of [
      '"x"',
      '""',
      '" 1"',
      '"1,5"',
      'null',
      'true',
      '[1]',
      '{"a":1}',
      '"0x"',
      '"NaN"',
      '"Infinity"',
      '"1e"',
    ]) {
      await refuse('int256', `{"v":${value}}`);
    }
    assert.deepEqual(await decoded('int8', '{"v":-128}', ['int8']), [-128n]);
    assert.deepEqual(await decoded('int8', '{"v":127.99}', ['int8']), [127n]);
    assert.deepEqual(await decoded('int64', '{"v":-9223372036854775808}', ['int64']), [-(2n ** 63n)]);
    assert.deepEqual(await decoded('uint8', '{"v":255}', ['uint8']), [255n]);
    await refuse('int64', '{"v":9223372036854775808}');
  });

  it('`bool` takes JSON booleans, 0, 1 and their texts, and nothing else (rule 7)', async () => {
    for (const text of ['true', '1', '1.0', '1e0', '"true"', '"1"']) {
      assert.deepEqual(await decoded('bool', `{"v":${text}}`, ['bool']), [true], text);
    }
    for (const text of ['false', '0', '-0', '"false"', '"0"']) {
      assert.deepEqual(await decoded('bool', `{"v":${text}}`, ['bool']), [false], text);
    }
    for (const text of [
      '2',
      '-1',
      '0.5',
      '1.0000000000000000001',
      '1e-400',
      '"yes"',
      '"True"',
      '" true"',
      '""',
      'null',
      '[]',
      '{}',
      '[true]',
    ]) {
      await refuse('bool', `{"v":${text}}`);
    }
  });

  it('`address` takes 20 bytes of hex, mixed case with the right checksum', async () => {
    for (const text of [ADDRESS, ADDRESS.toLowerCase(), `0x${ADDRESS.slice(2).toUpperCase()}`]) {
      assert.deepEqual(await decoded('address', `{"v":"${text}"}`, ['address']), [ADDRESS]);
    }
    for (const text of [ADDRESS.replace('CdD', 'cdD'), ADDRESS.slice(2), `${ADDRESS}00`, '0x', 'vitalik.eth']) {
      await refuse('address', `{"v":"${text}"}`);
    }
    await refuse('address', '{"v":0}');
  });

  it('`bytesN` takes hex or UTF-8 text of at most N bytes, padded right', async () => {
    assert.deepEqual(await decoded('bytes32', '{"v":"hello"}', ['bytes32']), [encodeBytes32String('hello')]);
    assert.deepEqual(await decoded('bytes32', '{"v":"0x1234"}', ['bytes32']), [zeroPadBytes('0x1234', 32)]);
    assert.deepEqual(await decoded('bytes32', `{"v":"${'x'.repeat(32)}"}`, ['bytes32']), [
      hexlify(toUtf8Bytes('x'.repeat(32))),
    ]);
    assert.deepEqual(await decoded('bytes32', '{"v":""}', ['bytes32']), [`0x${'00'.repeat(32)}`]);
    assert.deepEqual(await decoded('bytes4', '{"v":"é€"}'.replace('é', 'e'), ['bytes4']), ['0x65e282ac']);
    assert.deepEqual(await decoded('bytes1', '{"v":"0xAB"}', ['bytes1']), ['0xab']);
    for (const [type, text] of [
      ['bytes32', 'x'.repeat(33)],
      ['bytes4', 'é€x'],
      ['bytes1', '0xabcd'],
      ['bytes32', '0x123'],
      ['bytes32', '0xzz'],
    ] as const) {
      await refuse(type, `{"v":"${text}"}`);
    }
    for (const text of ['1', 'true', 'null', '[1,2]']) await refuse('bytes32', `{"v":${text}}`);
  });

  it('`bytes` takes hex or UTF-8 text, `string` texts, numbers and booleans', async () => {
    assert.deepEqual(await decoded('bytes', '{"v":"0xdeadBEEF"}', ['bytes']), ['0xdeadbeef']);
    assert.deepEqual(await decoded('bytes', '{"v":"0x"}', ['bytes']), ['0x']);
    assert.deepEqual(await decoded('bytes', '{"v":"grüße"}', ['bytes']), [hexlify(toUtf8Bytes('grüße'))]);
    for (const text of ['0xabc', '0Xab', '0xgg']) await refuse('bytes', `{"v":"${text}"}`);
    const strings: [string, string][] = [
      ['"\\ud83d\\ude00 text\\u0000"', '\u{1f600} text\0'],
      ['""', ''],
      ['12345678901234567891', '12345678901234567891'],
      ['1.50', '1.5'],
      ['true', 'true'],
    ];
    for (const [text, value] of strings)
      assert.deepEqual(await decoded('string', `{"v":${text}}`, ['string']), [value]);
    for (const text of ['null', '[]', '{}', '"\\ud800"']) await refuse('string', `{"v":${text}}`);
    const long = 'x'.repeat(1_048_570);
    assert.deepEqual(await decoded('string', `{"v":"${long.slice(0, -10)}"}`, ['string']), [long.slice(0, -10)]);
  });

  it('lists are matched by position and encoded together (rule 3)', async () => {
    const text = '{"v":-5,"a,b":true,"s":"text","n":[1,2,200]}';
    assert.deepEqual(await decoded('list', text, ['int256', 'bool', 'string', 'uint8']), [-5n, true, 'text', 200n]);
    assert.deepEqual(await decoded('times', '{"v":1.2345678901234567891}', ['int256', 'uint256', 'int8']), [
      123n,
      1n,
      12n,
    ]);
    assert.deepEqual(await decoded('single', '{"v":-1.239,"w":2}', ['int256', 'uint256']), [-123n, 200n]);
    await refuse('list', '{"v":-5,"s":"text","n":[1]}', "No value found at path: $['a,b']");
    await refuse('list', '{"v":-5,"a,b":true,"s":"text","n":[]}', 'No value found at path: $.n[-1:]');
    await refuse('list', '{"v":-5,"a,b":true,"s":"text","n":[256]}');
  });

  it('a JSONPath that matches nothing is 502 `No value found at path: <path>` (rule 8)', async () => {
    for (const text of ['{}', '[]', '{"V":1}', '{"a":{"v":1}}', '"v"', '1', 'null', '{"v ":1}']) {
      await refuse('int256', text, 'No value found at path: $.v');
    }
    await refuse(
      'filter',
      '{"list":[{"ok":true,"v":1},{"v":5}]}',
      'No value found at path: $.list[?(@.ok && @.v > 1)].v',
    );
    assert.deepEqual(await decoded('filter', '{"list":[{"v":9},{"ok":true,"v":12345678901234567891}]}', ['uint256']), [
      123456789012345678910n,
    ]);
    assert.deepEqual(await decoded('root', ' 7 ', ['int256']), [7n]);
  });

  it('of duplicate keys the last wins', async () => {
    assert.equal(await number('int256', '1,"v":2'), 2n);
    assert.equal(
      await number('int256', '12345678901234567891,"v":{"v":5},"\\u0076":12345678901234567893'),
      12345678901234567893n,
    );
  });

  it('a pinned field ignores reserved parameters silently (rule 4)', async () => {
    const parameters = { _type: 'string', _path: '$.w', _times: '1000' };
    assert.deepEqual(await decoded('int256', '{"v":1,"w":2}', ['int256'], 'api', parameters), [1n]);
    assert.deepEqual(await decoded('int256', '{"v":1}', ['int256'], 'api', { _type: 1, _path: {}, _times: null }), [
      1n,
    ]);
    assert.deepEqual(await decoded('e18', '{"v":1}', ['int256'], 'api', { _times: '1' }), [10n ** 18n]);
  });

  it('a plugin that replaced the data loses what a double cannot hold', async () => {
    assert.equal(await number('int256', '12345678901234567891', 'replaced'), 12345678901234567000n);
    assert.equal(await number('e18', '0.1234567890123456789', 'replaced'), 123456789012345680n);
    assert.equal(await number('int256', '"12345678901234567891"', 'replaced'), 12345678901234567891n);
  });

  it('onBeforeSign sees the bytes that are then signed', () => {
    assert.ok(notes.of('signed data').includes(coder.encode(['int256'], [12345678901234567891n])));
  });
});
