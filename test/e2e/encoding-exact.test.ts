/** Encodings with `exact: true` refuse what their type would cut. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodingsFor } from '../support/encodings.ts';
import { suite } from '../support/lifetime.ts';

const encodings = {
  plain: { type: 'int256', path: '$.v' },
  exact: { type: 'int256', path: '$.v', exact: true },
  tenfold: { type: 'int256', path: '$.v', times: '10', exact: true },
  hundredfold: { type: 'int256', path: '$.v', times: '1e2', exact: true },
  small: { type: 'int256', path: '$.v', times: '1e-4', exact: true },
  list: { type: 'string,int256,bool', path: '$.v,$.n,$.b', times: ',100,', exact: true },
  chosen: { type: '*', path: '$.v', times: '*', exact: true },
  text: { type: 'string', path: '$.v', exact: true },
};

describe('encodings with `exact: true` refuse what their type would cut', async () => {
  const { service, signs, refuses } = await encodingsFor(suite, encodings);

  it('numbers and texts, after the multiplication', async () => {
    await signs([2064n], 'plain', '{"v":2064.25}');
    for (const value of ['2064.25', '"2064.25"', '-0.55', '1e-400', '0.1e-4000', '1e-999999999'])
      for (const endpoint of ['exact', 'tenfold']) await refuses(endpoint, `{"v":${value}}`);
    const whole = { '2064': 2064n, '2064.000': 2064n, '"0x10"': 16n, '1.5e1': 15n, '-0.0': 0n };
    for (const [value, signed] of Object.entries(whole)) await signs([signed], 'exact', `{"v":${value}}`);
    await signs([206425n], 'hundredfold', '{"v":2064.25}');
    await signs([20642n], 'tenfold', '{"v":2064.2}');
    await signs([2n], 'small', '{"v":20000}');
    for (const value of ['20642', '1']) await refuses('small', `{"v":${value}}`);
  });

  it('each integer of a list; other types cut nothing', async () => {
    await signs(['0.5', 25n, true], 'list', '{"v":0.5,"n":0.25,"b":true}');
    await refuses('list', '{"v":0.5,"n":0.255,"b":true}');
    await signs(['0.5'], 'text', '{"v":0.5}');
  });

  it('with the type and the multiplier that the requester chose', async () => {
    const ask = { _type: 'int256', _times: '1e2' };
    await signs([206425n], 'chosen', '{"v":2064.25}', ask);
    await refuses('chosen', '{"v":2064.255}', undefined, ask);
    await refuses('chosen', '{"v":2064.25}', undefined, { _type: 'uint256', _times: 1 });
    await signs(['0.5'], 'chosen', '{"v":0.5}', { _type: 'string', _times: 1 });
  });

  it('and it says why in the log', async () => {
    await refuses('exact', '{"v":0.5}');
    const reasons = service.logs.flatMap(({ fields }) => (fields.stage === 'encode' ? [fields.detail] : []));
    assert.equal(reasons.at(-1), 'the number has a fraction, which int256 cuts');
  });
});

describe('a value other than zero that is cut to 0', async () => {
  const answers: Record<string, string> = {
    minus: '{"v":-0.4}',
    tiny: '{"v":"-1e-19"}',
    list: '{"v":5,"w":0.3}',
    long: `{"pad":"${'x'.repeat(4000)}","v":0.9}`,
    filter: '{"v":[{"id":"a","w":1e-400}]}',
    exact: '{"v":-0.4}',
    one: '{"v":-1}',
    zero: '{"v":-0.0}',
    times: '{"v":7}',
    more: '{"v":1.4}',
  };
  const uint = { type: 'uint256', path: '$.v' };
  const { service, ...api } = await encodingsFor(suite, {
    ...{ minus: uint, long: uint, one: uint, zero: uint, more: uint },
    tiny: { ...uint, times: '1e18' },
    list: { type: 'uint256,uint8', path: '$.v,$.w' },
    filter: { type: 'int8', path: "$.v[?(@.id=='a')].w" },
    exact: { ...uint, exact: true },
    times: { ...uint, times: '0' },
  });
  const warning =
    'a value other than zero is signed as 0, since integers hold no fraction: set a larger times, or exact: true to refuse it';
  const warned = () => service.logs.filter(({ message }) => message === warning).map(({ fields }) => fields.endpoint);
  const signs = (endpoint: string, ...values: bigint[]) => api.signs(values, endpoint, answers[endpoint] ?? '');

  it('is signed, and logged once an endpoint', async () => {
    for (const name of ['minus', 'tiny', 'long', 'minus']) await signs(name, 0n);
    await signs('list', 5n, 0n);
    await signs('filter', 0n);
    assert.deepEqual(warned(), ['api/minus', 'api/tiny', 'api/long', 'api/list', 'api/filter']);
  });

  it('is refused with exact: true, and a value of -1 always', async () => {
    for (const name of ['exact', 'one']) await api.refuses(name, answers[name] ?? '');
    assert.ok(!warned().includes('api/exact') && !warned().includes('api/one'));
  });

  it('is no zero, nothing that is multiplied by 0, and nothing of which a part is left', async () => {
    for (const [name, value] of Object.entries({ zero: 0n, times: 0n, more: 1n })) {
      await signs(name, value);
      assert.ok(!warned().includes(`api/${name}`), name);
    }
  });
});
