/** A hook's result of the wrong shape drops the request, and the log names the reason. */
import { inspect } from 'node:util';
import { raise, throwingProxy, withGetter } from '../support/plugin-files.ts';
import { ANYTHING, at, itDrops, proxies, type Values, withPuppet } from '../support/puppet.ts';

const puppet = await withPuppet();

const common: Values = {
  null: () => null,
  'a number': () => 0,
  'a text': () => 'LEAK',
  'an empty text': () => '',
  true: () => true,
  false: () => false,
  'a bigint': () => 1n,
  'a symbol': () => Symbol('LEAK'),
  'a function': () => () => undefined,
  'an array': () => [],
  'an empty object': () => ({}),
  'another key': () => ({ rejected: true, response: {}, bytes: '0x' }),
};

const each = (key: string, values: readonly unknown[], more = {}): Values =>
  Object.fromEntries(values.map((value) => [`${key} ${inspect(value)}`, () => ({ ...more, [key]: value })] as const));

itDrops(puppet, 'onHttpRequest', {
  'returned no object with "reject"': common,
  '"reject" is no boolean': each('reject', ['yes', 1, null, undefined]),
  '"status" is no HTTP error status': each('status', [200, 302, 399, 600, 403.5, Number.NaN, '403', null], {
    reject: true,
  }),
  '"message" is no string': each('message', [7, null, { LEAK: 1 }], { reject: true }),
  '"message" is longer than 8192 characters': {
    'a long message': () => ({ reject: true, message: 'x'.repeat(8193) }),
  },
  [ANYTHING]: { ...proxies, 'a getter that throws': () => withGetter('reject', () => raise(throwingProxy())) },
});

itDrops(puppet, 'onBeforeApiCall', {
  'returned no object with "parameters"': common,
  '"parameters" is no object': {
    ...at('parameters', { null: () => null, 'a text': () => 'q=1', 'an array': () => [['q', 1]] }),
    ...each('parameters', [undefined, 1]),
  },
  [ANYTHING]: proxies,
});

itDrops(puppet, 'onAfterApiCall', {
  'returned no object with "data"': { ...common, 'no data, but a status': () => ({ status: 200 }) },
  'holds a undefined, which JSON cannot carry': each('data', [undefined]),
  '"status" is no HTTP status': each('status', [99, 600, '200', null, 200.5], { data: {} }),
  [ANYTHING]: proxies,
});

itDrops(puppet, 'onBeforeSign', {
  'returned no object with "data"': common,
  '"data" is no hex string of whole bytes': {
    ...each('data', [null, undefined, 17, '', '0', '0x1', '0X12', '1234', '0xzz', '0x12 ', '0x12\n', ['0x12']]),
    ...each('data', [Buffer.from([1]), Object('0x12')]),
  },
  [ANYTHING]: proxies,
});
