/** Pinned encodings sign each digit of the upstream's value. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder, encodeBytes32String, hexlify, toUtf8Bytes, zeroPadBytes } from 'ethers';
import { verifyResponse } from '../../verify/index.ts';
import { encodingsFor } from '../support/encodings.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFile } from '../support/plugin-files.ts';
import { TEST_ADDRESS } from '../support/service.ts';

const coder = AbiCoder.defaultAbiCoder();
const ADDRESS = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const MAX = 2n ** 256n - 1n;
const MAX_INT = 2n ** 255n - 1n;

/** Replaces the answer by one with the same numbers. */
const replacer = pluginFile(
  'replacer',
  `onAfterApiCall({ endpoint, response }) { if (endpoint.startsWith('replaced')) return { data: response.data }; },
   onBeforeSign({ data }) { note('signed data', data); }`,
);

const numbers = ['int256', 'uint256', 'int8', 'uint8', 'int64'];
const others = ['bool', 'bytes32', 'bytes4', 'bytes1', 'address', 'string', 'bytes'];
/** One pinned endpoint per type; the request chooses the answer, the operator the encoding. */
const encodings: Readonly<Record<string, { type: string; path: string; times?: string }>> = {
  ...Object.fromEntries([...numbers, ...others].map((type) => [type, { type, path: '$.v' }])),
  e18: { type: 'int256', path: '$.v', times: '1e18' },
  'e-6': { type: 'int256', path: '$.v', times: '1e-6' },
  negative: { type: 'int256', path: '$.v', times: '-0.5' },
  e77: { type: 'int256', path: '$.v', times: '1e77' },
  'e-77': { type: 'uint256', path: '$.v', times: '1e-77' },
  list: { type: 'int256,bool,string,uint8', path: "$.v,$['a,b'],$.s,$.n[-1:]" },
  times: { type: 'int256,uint256,int8', path: '$.v,$.v,$.v', times: '100,,10' },
  single: { type: 'int256,uint256', path: '$.v,$.w', times: '1e2' },
  filter: { type: 'uint256', path: '$.list[?(@.ok && @.v > 1)].v', times: '10' },
  root: { type: 'int256', path: '$' },
  replaced: { type: 'int256', path: '$.v' },
  'replaced-e18': { type: 'int256', path: '$.v', times: '1e18' },
};

/** An answer whose `v` is this token of JSON, or this text. */
const v = (token: string) => `{"v":${token}}`;
const text = (value: string) => v(JSON.stringify(value));

/** What is signed: the endpoint, the upstream's answer, and the values. */
type Signed = readonly [endpoint: string, answer: string, ...values: unknown[]];
/** What is 502 `API call failed`: the endpoint and its answers. */
type Refused = readonly [endpoint: string, ...answers: string[]];

const DIGITS: readonly (readonly [endpoint: string, token: string, value: bigint])[] = [
  ['int256', '12345678901234567891', 12345678901234567891n],
  ['int256', '-12345678901234567891', -12345678901234567891n],
  ['int256', '9007199254740993', 9007199254740993n],
  ['int256', '1e20', 10n ** 20n],
  ['int256', '123456789e-3', 123456n],
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
  ['e-6', `${MAX_INT}000000`, MAX_INT],
  ['e77', '0.5', 5n * 10n ** 76n],
  ['uint256', '-0.5', 0n],
  ['uint8', '255.9', 255n],
];
const BROKEN_HEX = ['0x1', '0x123g', '0xyz', '0X12', '0x12 '];
const LONE_SURROGATES = ['"\\ud800"', '"a\\udc00"', '"\\udc00\\ud800"'];
const NO_TEXT = ['0', '1', 'true', 'null', '[]', '{}', '[1,2]', ...LONE_SURROGATES];
const LIST = '{"v":-5,"a,b":true,"s":"text","n":[1,2,200]}';

const rules: Readonly<Record<string, { signed: readonly Signed[]; refused?: readonly Refused[] }>> = {
  'integers reach the signature digit by digit': {
    signed: DIGITS.flatMap(([endpoint, token, value]): Signed[] => [
      [endpoint, v(token), value],
      [endpoint, text(token), value],
    ]),
  },
  'texts of 78 digits, signs and hex are numbers, too': {
    signed: [
      ...[v, text].flatMap((form): Signed[] => [
        ['int256', form(`${MAX_INT}`), MAX_INT],
        ['uint256', form(`${MAX}`), MAX],
      ]),
      ['int256', v(`${-MAX_INT - 1n}`), -MAX_INT - 1n],
      ['int256', text('-12.5e1'), -125n],
      ['int256', text('+7'), 7n],
      ['int256', text('0xfF'), 255n],
      ['e18', text('0xf'), 15n * 10n ** 18n],
      ['uint256', text(`0x${'f'.repeat(64)}`), MAX],
      ['uint256', text(`0x${'0'.repeat(500)}7`), 7n],
      ['e-77', text(`0x1${'0'.repeat(127)}`), 16n ** 127n / 10n ** 77n],
    ],
  },
  'a fraction is truncated toward zero without `times` (rule 2)': {
    signed: [
      ['int256', v('1.9'), 1n],
      ['int256', v('-1.9'), -1n],
      ['int256', v('0.999999999999999999999'), 0n],
      ['int256', v('-0.5'), 0n],
    ],
  },
  'what does not fit the type is 502': {
    signed: [
      ['int8', v('-128'), -128n],
      ['int8', v('127.99'), 127n],
      ['int64', v('-9223372036854775808'), -(2n ** 63n)],
      ['uint8', v('255'), 255n],
    ],
    refused: [
      ['int256', v(`${MAX_INT + 1n}`), v(`${-MAX_INT - 2n}`), v('1e308'), text('1e999999999')],
      ['uint256', v(`${MAX + 1n}`), v('-1')],
      ['int8', v('128')],
      ['uint8', v('256')],
      ['int64', v('9223372036854775808')],
      ['e77', v('10')],
      ['int256', ...['x', '', ' 1', '1 ', '1,5', 'NaN', 'Infinity', '1e', `${-MAX_INT - 2n}`].map(text)],
      ['int256', ...['null', 'true', 'false', '[]', '[1]', '{}', '{"a":1}'].map(v)],
      ['uint256', ...['0x', '0X1f', '-0x1', '0x1g', '0x1.5', `0x1${'0'.repeat(64)}`].map(text)],
      ['e-77', ...[`0x${'0'.repeat(4096)}`, `0x${'f'.repeat(129)}`, '9'.repeat(5000)].map(text)],
    ],
  },
  '`bool` takes JSON booleans, 0, 1 and their texts, and nothing else (rule 7)': {
    signed: [
      ...['true', '1', '1.0', '10e-1', '"true"', '"1"'].map((token): Signed => ['bool', v(token), true]),
      ...['false', '0', '-0', '0.0', '"false"', '"0"'].map((token): Signed => ['bool', v(token), false]),
    ],
    refused: [
      ['bool', ...['2', '-1', '0.5', '1.0000000000000000001', '1e-400', 'null', '[]', '{}', '[true]'].map(v)],
      ['bool', ...['yes', 'True', 'TRUE', ' true', ' 1', '1.0', '0x1', '00', ''].map(text)],
    ],
  },
  '`address` takes 20 bytes of hex, mixed case with the right checksum': {
    signed: [ADDRESS, ADDRESS.toLowerCase(), `0x${ADDRESS.slice(2).toUpperCase()}`].map(
      (address): Signed => ['address', text(address), ADDRESS],
    ),
    refused: [
      ['address', ...[ADDRESS.replace('CdD', 'cdD'), ADDRESS.slice(2), `${ADDRESS}00`, '0x', 'vitalik.eth'].map(text)],
      ['address', ...[ADDRESS.slice(0, -1), ADDRESS.replace('0x', '0X'), `${ADDRESS}\n`, ''].map(text)],
      ['address', ...['0', 'null', `["${ADDRESS}"]`].map(v)],
    ],
  },
  '`bytesN` takes hex or UTF-8 text of at most N bytes, padded right': {
    signed: [
      ['bytes32', text('hello'), encodeBytes32String('hello')],
      ['bytes32', text('0x1234'), zeroPadBytes('0x1234', 32)],
      ['bytes32', text('x'.repeat(32)), hexlify(toUtf8Bytes('x'.repeat(32)))],
      ['bytes32', text(''), `0x${'00'.repeat(32)}`],
      ['bytes4', text('e€'), '0x65e282ac'],
      ['bytes4', text('0xDEAD'), '0xdead0000'],
      ['bytes4', text('0x'), '0x00000000'],
      ['bytes1', text('0xAB'), '0xab'],
    ],
    refused: [
      ['bytes32', ...['x'.repeat(33), ...BROKEN_HEX].map(text), ...NO_TEXT.map(v)],
      ['bytes4', text('é€x')],
      ['bytes1', text('0xabcd')],
    ],
  },
  '`bytes` takes hex or UTF-8 text, `string` texts, numbers and booleans': {
    signed: [
      ['bytes', text('0xdeadBEEF'), '0xdeadbeef'],
      ['bytes', text('0x'), '0x'],
      ['bytes', text(''), '0x'],
      ['bytes', text('1234'), '0x31323334'],
      ['bytes', text('grüße 😀'), hexlify(toUtf8Bytes('grüße 😀'))],
      ['string', v('"\\ud83d\\ude00 text\\u0000"'), '\u{1f600} text\0'],
      ...['', ' a ', '0x1', '0xzz'].map((token): Signed => ['string', text(token), token]),
      ...['12345678901234567891', '0.1234567890123456789', '0.1', '1e-7', '1e-400', 'true', 'false'].map(
        (token): Signed => ['string', v(token), token],
      ),
      ...Object.entries({ '1.50': '1.5', '1e2': '100', '-0': '0', '1E21': '1e+21' }).map(
        ([token, written]): Signed => ['string', v(token), written],
      ),
    ],
    refused: [
      ['bytes', ...BROKEN_HEX.map(text), ...NO_TEXT.map(v)],
      ['string', ...['null', '[]', '{}', ...LONE_SURROGATES].map(v)],
    ],
  },
  'lists are matched by position and encoded together (rule 3)': {
    signed: [
      ['list', LIST, -5n, true, 'text', 200n],
      ['times', v('1.2345678901234567891'), 123n, 1n, 12n],
      ['single', '{"v":-1.239,"w":2}', -123n, 200n],
    ],
    refused: [['list', LIST.replace('200', '256')]],
  },
  'of duplicate keys the last wins': {
    signed: [
      ['int256', '{"v":1,"v":2}', 2n],
      ['int256', '{"v":12345678901234567891,"v":{"v":5},"\\u0076":12345678901234567893}', 12345678901234567893n],
    ],
  },
};

describe('pinned encodings', async () => {
  const { ask, signs, refuses } = await encodingsFor(suite, encodings, { sources: { replacer } });

  for (const [rule, { signed, refused = [] }] of Object.entries(rules)) {
    it(rule, async () => {
      for (const [endpoint, answer, ...values] of signed) await signs(values, endpoint, answer);
      for (const [endpoint, ...answers] of refused) for (const answer of answers) await refuses(endpoint, answer);
    });
  }

  it('a text of a megabyte is signed letter by letter', async () => {
    const words = [32, 1_048_560].map((word) => word.toString(16).padStart(64, '0'));
    const long = 'x'.repeat(1_048_560);
    const body = await (await ask('string', text(long))).json();
    // The encoder of ethers takes seconds for so much, and a message with both texts megabytes.
    assert.ok(Object(body).data === `0x${words.join('')}${Buffer.from(long).toString('hex').padEnd(2_097_152, '0')}`);
    assert.equal(verifyResponse(body, { node: TEST_ADDRESS }).ok, true);
  });

  it('a JSONPath that matches nothing is 502 `No value found at path: <path>` (rule 8)', async () => {
    for (const given of ['{}', '[]', '{"V":1}', '{"a":{"v":1}}', '"v"', '1', 'null', '{"v ":1}'])
      await refuses('int256', given, 'No value found at path: $.v');
    const found = '$.list[?(@.ok && @.v > 1)].v';
    await refuses('filter', '{"list":[{"ok":true,"v":1},{"v":5}]}', `No value found at path: ${found}`);
    await refuses('list', LIST.replace('a,b', 'a'), "No value found at path: $['a,b']");
    await refuses('list', LIST.replace('1,2,200', ''), 'No value found at path: $.n[-1:]');
    const second = '{"list":[{"v":9},{"ok":true,"v":12345678901234567891}]}';
    await signs([123456789012345678910n], 'filter', second);
    await signs([7n], 'root', ' 7 ');
  });

  it('a pinned field ignores reserved parameters silently (rule 4)', async () => {
    const given = '{"v":1,"w":2}';
    await signs([1n], 'int256', given, { _type: 'string', _path: '$.w', _times: '1000' });
    await signs([1n], 'int256', given, { _type: 1, _path: {}, _times: null });
    await signs([10n ** 18n], 'e18', given, { _times: '1' });
  });

  it('a plugin that replaced the data loses what a double cannot hold', async () => {
    await signs([12345678901234567000n], 'replaced', v('12345678901234567891'));
    await signs([123456789012345680n], 'replaced-e18', v('0.1234567890123456789'));
    await signs([10n ** 21n], 'replaced', v('1e21'));
    await signs([100000000000n], 'replaced-e18', v('1e-7'));
    await signs([0n], 'replaced', v('-0'));
    await signs([12345678901234567891n], 'replaced', text('12345678901234567891'));
  });

  it('onBeforeSign sees the bytes that are then signed', () => {
    assert.ok(notes.of('signed data').includes(coder.encode(['int256'], [12345678901234567891n])));
  });
});
