/** `encoding.combine` makes one number of all values that the paths find, in exact decimals. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodingsFor } from '../support/encodings.ts';
import { suite } from '../support/lifetime.ts';

const int = { type: 'int256', times: '1' };
const two = { type: 'int256', path: '$.a,$.b', times: '1e18' };
const encodings = {
  ...Object.fromEntries(
    ['mean', 'median', 'min', 'max'].map((combine) => [combine, { ...int, path: '$.v[*]', combine }]),
  ),
  two: { ...two, combine: 'mean' },
  plain: { type: 'int256', path: '$.a,$.b', combine: 'mean', exact: false },
  exact: { ...int, path: '$.v[*]', combine: 'mean', exact: true },
  unsigned: { type: 'uint8', path: '$..p', combine: 'mean', times: '1' },
  filter: { ...int, path: '$.v[?(@.p > 0)].p', combine: 'median' },
  largest: { type: 'uint256', path: '$.v[*]', combine: 'mean', exact: false },
  negative: { ...int, path: '$.v[*]', combine: 'max', times: '-1' },
};

describe('`encoding.combine`', async () => {
  const feed = {
    parameters: [{ name: 'symbol', required: true }],
    encoding: { ...two, path: '$.Quote.{symbol}.bidPrice,$.Quote.{symbol}.askPrice', combine: 'mean' },
  };
  const { service, refuses, ...api } = await encodingsFor(
    suite,
    { ...encodings, feed: feed.encoding },
    { endpoints: { feed } },
  );
  const signs = (value: bigint, endpoint: string, text: string, parameters?: Readonly<Record<string, unknown>>) =>
    api.signs([value], endpoint, text, parameters);

  it('the mean of 0.1 and 0.2 has every digit', async () => {
    await signs(150000000000000000n, 'two', '{"a":0.1,"b":0.2}');
    await signs(150000000000000000n, 'two', '{"a":"0.1","b":0.2}');
    const close = '{"a":12345678901234567890.1,"b":12345678901234567892.3}';
    await signs(12345678901234567891200000000000000000n, 'two', close);
    await signs(12345678901234567891n, 'plain', close);
  });

  it('of an even count, the median is the mean of the two in the middle', async () => {
    const rows: [string, string, bigint][] = [
      ['mean', '[1,2,6]', 3n],
      ['mean', '[1,2,5]', 2n],
      ['mean', '[-1,-2,-5]', -2n],
      ['mean', '[7]', 7n],
      ['median', '[30,1,2]', 2n],
      ['median', '[30,1,2,4]', 3n],
      ['median', '[10,9,"8","0x7"]', 8n],
      ['median', '[1e3,5]', 502n],
      ['min', '[3,-2.5,"1e1"]', -2n],
      ['max', '[3,-2.5,"1e1"]', 10n],
      ['max', '[0.1,0.01,9007199254740993]', 9007199254740993n],
      ['min', '[0,0.0,-0]', 0n],
      ['negative', '[1,5,3]', -5n],
    ];
    for (const [endpoint, list, expected] of rows) await signs(expected, endpoint, `{"v":${list}}`);
  });

  it('the sum may be larger than the type, and the result is cut once', async () => {
    const max = 2n ** 256n - 1n;
    await signs(max, 'largest', `{"v":[${Array(12).fill(max)}]}`);
    await refuses('largest', `{"v":[${max},${max * 9n}]}`);
    await signs(255n, 'unsigned', '{"x":[{"p":255},{"p":255.9},{"p":255}]}');
    await refuses('unsigned', '{"x":[{"p":255},{"p":257.1}]}');
    await signs(0n, 'unsigned', '{"x":[{"p":-1},{"p":0.5}]}');
  });

  it('with `exact: true` a remainder is 502', async () => {
    await signs(3n, 'exact', '{"v":[1,2,6]}');
    await signs(1n, 'exact', '{"v":[0.5,1.5]}');
    await signs(450n, 'exact', '{"v":[300,600]}');
    for (const list of ['[1,2]', '[100,200,200]', '[0.1,0.2]', '[1e30,1e30,1e30,1]'])
      await refuses('exact', `{"v":${list}}`);
  });

  it('all that a path finds counts; a filter says which', async () => {
    await signs(7n, 'filter', '{"v":[{"p":0},{"p":null},{"p":5},{"p":"9"},{"p":7}]}');
  });

  it('nothing found is 502, of each path', async () => {
    await refuses('mean', '{"v":[]}', 'No value found at path: $.v[*]');
    await refuses('two', '{"b":1}', 'No value found at path: $.a');
    await refuses('two', '{"a":1}', 'No value found at path: $.b');
    await refuses('feed', '{"Quote":{}}', 'No value found at path: $.Quote.{symbol}.bidPrice', { symbol: 'A' });
  });

  it('what is no number is 502', async () => {
    for (const list of ['[1,null]', '[1,"NaN"]', '[1,true]', '[1,[2]]', '[1,""]', '[1,{"p":1}]', '["Infinity"]'])
      for (const endpoint of ['mean', 'median', 'min', 'max']) await refuses(endpoint, `{"v":${list}}`);
    assert.ok(service.logs.some(({ fields }) => fields.detail === 'null is no value for int256'));
  });

  it('numbers far from each other are refused, and cost nothing', async () => {
    for (const list of ['["1e999999999",1]', '["1e-999999999",1]', '["1e6000",1,"-1e6000"]'])
      await refuses('mean', `{"v":${list}}`);
    const started = performance.now();
    await signs(1n, 'mean', `{"v":[${Array(2000).fill('"1e-4900",2')}]}`);
    assert.ok(performance.now() - started < 5000);
  });

  it('goes together with templates', async () => {
    const text = '{"Quote":{"A.B":{"bidPrice":1.1,"askPrice":1.2}}}';
    await signs(1150000000000000000n, 'feed', text, { symbol: 'A.B' });
    await refuses('feed', text.replace('1.2', '"NaN"'), 'API call failed', { symbol: 'A.B' });
  });
});
