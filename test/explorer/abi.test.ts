import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { withFactors } from '../../builtins/explorer/client/factor.ts';
import { humanOf } from '../../builtins/explorer/client/human.ts';
import { decodeAbi } from '../../lib/eth/decode-abi.ts';

const coder = AbiCoder.defaultAbiCoder();
const ADDRESS = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
const word = (hex: string) => hex.padStart(64, '0');

describe('the decoder of the explorer', () => {
  const samples: readonly (readonly [types: string, values: readonly unknown[], shown: readonly string[]])[] = [
    ['int256', [-(2n ** 255n)], [String(-(2n ** 255n))]],
    ['int256', [3121440000000000000000n], ['3121440000000000000000']],
    ['uint256', [2n ** 256n - 1n], [String(2n ** 256n - 1n)]],
    ['int8', [-128], ['-128']],
    ['uint8', [255], ['255']],
    ['bool', [true], ['true']],
    ['bool', [false], ['false']],
    ['address', [ADDRESS], [ADDRESS]],
    ['bytes4', ['0xdeadbeef'], ['0xdeadbeef']],
    ['bytes32', [`0x${'ab'.repeat(32)}`], [`0x${'ab'.repeat(32)}`]],
    ['string', [''], ['""']],
    ['string', ['a "quoted"\n€'], ['"a \\"quoted\\"\\n€"']],
    ['bytes', [`0x${'01'.repeat(33)}`], [`0x${'01'.repeat(33)}`]],
    ['uint256,string,bool,bytes', [7, 'seven', true, '0x07'], ['7', '"seven"', 'true', '0x07']],
  ];
  for (const [types, values, shown] of samples) {
    it(`reads ${types}: ${shown.join(', ')}`, () => {
      const names = types.split(',');
      assert.deepEqual(
        decodeAbi(coder.encode(names, values), types),
        names.map((type, i) => ({ type, value: shown[i] })),
      );
    });
  }

  const refused: Readonly<Record<string, readonly [types: string, data: string]>> = {
    'a ciphertext in the place of an integer': [
      'uint256',
      coder.encode(['bytes32', 'bytes'], [`0x${'11'.repeat(32)}`, '0x1234']),
    ],
    'too little': ['uint256', '0x00'],
    'nothing for something': ['string', '0x'],
    'more than there is to be': ['uint256', `0x${word('1')}${word('1')}`],
    'an integer out of its range': ['uint8', `0x${word('100')}`],
    'a negative integer out of its range': ['int8', `0x${'f'.repeat(62)}7f`],
    'a truth of 2': ['bool', `0x${word('2')}`],
    'an address of 21 bytes': ['address', `0x${word('1'.repeat(42))}`],
    'bytes4 with a fifth': ['bytes4', `0xdeadbeef01${'0'.repeat(54)}`],
    'a text elsewhere': ['string', `0x${word('40')}${word('0')}${word('0')}`],
    'a text longer than the data': ['string', `0x${word('20')}${word('21')}${word('0')}`],
    'a text with something in its padding': ['string', `0x${word('20')}${word('1')}61${'0'.repeat(60)}01`],
    'a text that is no UTF-8': ['string', `0x${word('20')}${word('1')}ff${'0'.repeat(62)}`],
    'a type that it does not know': ['tuple', `0x${word('1')}`],
  };
  for (const [what, [types, data]] of Object.entries(refused)) {
    it(`says nothing of ${what}`, () => assert.equal(decodeAbi(data, types), undefined));
  }
});

it('each integer is shown with what it is multiplied by', () => {
  const rows: [string, string | undefined, string[]][] = [
    ['int256', '1e18', ['int256 × 1e18']],
    ['int256', undefined, ['int256']],
    ['int256', '', ['int256']],
    ['int256, uint8', '10', ['int256 × 10', 'uint8 × 10']],
    ['int256,bool', '1e18,', ['int256 × 1e18', 'bool']],
    ['bool,int8', ', 5', ['bool', 'int8 × 5']],
    ['int256,bool', '1', ['int256 × 1', 'bool']],
    ['_type', '_times', ['_type × _times']],
  ];
  for (const [types, times, shown] of rows) assert.deepEqual(withFactors(types, times), shown);
});

describe('what a person reads of a value', () => {
  const most = String(2n ** 255n - 1n);
  type Row = [exact: string, type: string, factor: string | undefined, path: string, shown: string | undefined];
  const rows: readonly Row[] = [
    ['2064250000000000000000', 'int256', '1e18', '$.price', '2064.25'],
    ['-2064250000000000000000', 'int256', '1e18', '$.price', '-2064.25'],
    ['2064250000000000000000', 'int256', '-1e18', '$.price', '-2064.25'],
    ['1', 'int256', '1e18', '$.price', '0.000000000000000001'],
    ['-1', 'int256', '1e18', '$.price', '-0.000000000000000001'],
    ['0', 'int256', '1e18', '$.price', undefined],
    ['0', 'int256', '-1e18', '$.price', undefined],
    ['1000', 'uint256', '1000', '$.price', '1'],
    ['3', 'uint8', '1.5', '$.price', '2'],
    ['3', 'uint8', '.5', '$.price', '6'],
    ['5', 'uint8', '1e-2', '$.price', '500'],
    ['1', 'uint8', '8', '$.price', '0.125'],
    [most, 'int256', '1e77', '$.price', `0.${most}`],
    [most, 'int256', '1e-3', '$.price', `${most}000`],
    ['10', 'uint8', '3', '$.price', undefined],
    ['9', 'uint8', '3', '$.price', '3'],
    ['7', 'uint8', '1', '$.price', undefined],
    ['7', 'uint8', '0', '$.price', undefined],
    ['7', 'uint8', 'much', '$.price', undefined],
    ['7', 'uint8', undefined, '$.price', undefined],
    ['1700000000', 'uint256', undefined, '$.price', undefined],
    ['1700000000', 'uint256', undefined, '$.updatedAt', '2023-11-14 22:13:20 UTC'],
    ['1700000000123', 'uint256', undefined, "$['closeTime']", '2023-11-14 22:13:20.123 UTC'],
    ['1700000000500', 'uint256', '1000', '$.timestamp', '1700000000.5'],
    ['1700000000000', 'uint256', '1000', '$.timestamp', '2023-11-14 22:13:20 UTC'],
    ['12', 'uint256', undefined, '$.timestamp', undefined],
    ['true', 'bool', undefined, '$.open', undefined],
    [ADDRESS, 'address', undefined, '$.owner', undefined],
    ['"größer \\"so\\""', 'string', undefined, '$.text', 'größer "so"'],
    ['""', 'string', undefined, '$.text', undefined],
  ];
  for (const [exact, type, factor, path, shown] of rows) {
    it(`${exact} as ${type} × ${factor} at ${path}`, () => {
      assert.equal(humanOf(exact, { type, ...(factor === undefined ? {} : { factor }) }, path), shown);
    });
  }
});
