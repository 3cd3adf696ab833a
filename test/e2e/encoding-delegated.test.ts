/** Requesters choose the encodings that operators leave to them, and no others. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { AbiCoder, encodeBytes32String } from 'ethers';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

const coder = AbiCoder.defaultAbiCoder();

const DATA = `{"v":1.5,"big":12345678901234567891,"neg":-7,"s":"text","b":true,"a":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  "list":[1,2,3],"x,y":4,"deep":{"er":{"v":9}},"null":null}`;

const full = { _type: 'int256', _path: '$.v', _times: '10' };

/** Every combination of what is pinned, what is delegated, and times that is left out; and what each signs. */
const COMBINATIONS = {
  'int256-v-none': 1n,
  'int256-v-100': 150n,
  'int256-v-free': 15n,
  'int256-free-none': -7n,
  'int256-free-100': -700n,
  'int256-free-free': -70n,
  'free-v-none': 1n,
  'free-v-100': 150n,
  'free-v-free': 15n,
  'free-free-none': -7n,
  'free-free-100': -700n,
  'free-free-free': -70n,
};

const PINNED = ['bool', 'bytes', 'bytes32', 'address', 'string'];
const missing = (name: string) => `Endpoint requires \`${name}\` request parameter`;
const invalid = (name: string) => `Invalid \`${name}\` request parameter`;

describe('delegated encodings', async () => {
  const encoding = ([type = '', path = '', times = '']: readonly string[]) => ({
    ...{ type: type.replace('free', '*'), path: path.replace('free', '*').replace(/^v$/, '$.v') },
    ...(times !== 'none' && { times: times.replace('free', '*') }),
  });
  const endpoints = {
    ...Object.fromEntries(Object.keys(COMBINATIONS).map((name) => [name, { encoding: encoding(name.split('-')) }])),
    'int8-type': { encoding: { type: 'int8', path: '*' } },
    pair: { encoding: { type: 'int256,bool', path: '*', times: '*' } },
    raw: {},
  };
  const answers = { '*': faults.text(DATA) };
  const { upstream, encoded, raw, refused } = await served(suite, endpoints, { answers });

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const assertSigned = async (values: unknown[], endpoint: string, parameters: unknown, types = 'int256') => {
    const { data } = await encoded(endpoint, parameters);
    assert.deepEqual(coder.decode(types.split(','), data).toArray(), values, JSON.stringify([endpoint, parameters]));
  };
  const refuse = async (endpoint: string, parameters: unknown, error: string) => {
    const { length } = upstream.requests;
    await refused(400, error, endpoint, parameters);
    assert.equal(upstream.requests.length, length, 'before any upstream call');
  };

  it('every combination takes what it delegates from the request and ignores the rest', async () => {
    const parameters = { _type: 'int256', _path: '$.neg', _times: '10' };
    for (const [endpoint, value] of Object.entries(COMBINATIONS)) await assertSigned([value], endpoint, parameters);
  });

  it('a missing one is 400 `Endpoint requires `<_param>` request parameter` (rule 5)', async () => {
    for (const [endpoint, needed] of [
      ['free-v-100', ['_type']],
      ['int256-free-none', ['_path']],
      ['int256-v-free', ['_times']],
      ['free-free-free', ['_type', '_path', '_times']],
    ] as const) {
      for (const name of needed) {
        await refuse(endpoint, { ...full, [name]: undefined }, missing(name));
        await refuse(endpoint, { ...full, [name]: null }, missing(name));
      }
    }
    await refuse('free-free-free', {}, missing('_type'));
    await refuse('free-free-free', undefined, missing('_type'));
  });

  it('`_type` takes seven types (rule 7)', async () => {
    const good: [string, string, unknown][] = [
      ['int256', '$.neg', -7n],
      ['uint256', '$.big', 12345678901234567891n],
      ['bool', '$.b', true],
      ['bytes32', '$.s', encodeBytes32String('text')],
      ['address', '$.a', '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'],
      ['string', '$.s', 'text'],
      ['bytes', '$.s', '0x74657874'],
    ];
    for (const [type, path, value] of good)
      await assertSigned([value], 'free-free-none', { _type: type, _path: path }, type);
    const texts = ['int8', 'uint128', 'bytes4', 'int', 'float', '*', '', 'int256,', 'INT256', 'toString'];
    for (const type of [...texts, 'x'.repeat(2000), 1, true, [], {}, ['int256']])
      await refuse('free-free-none', { _type: type, _path: '$.v' }, invalid('_type'));
  });

  it('`_times` is a number or its text, not absurdly large', async () => {
    const good: [unknown, bigint][] = [
      ['1e18', 15n * 10n ** 17n],
      [100, 150n],
      [0.5, 0n],
      ['-2', -3n],
      ['', 1n],
      [1e21, 15n * 10n ** 20n],
    ];
    for (const [times, value] of good) await assertSigned([value], 'int256-v-free', { _times: times });
    const large = ['1e78', '1e-78', '1e999999999', '9'.repeat(101)];
    for (const times of [...large, 'x', '0x10', 'NaN', '1,2', ' ,', true, [], {}, [1]])
      await refuse('int256-v-free', { _times: times }, invalid('_times'));
    for (const type of PINNED) {
      await refuse('free-free-free', { _type: type, _path: '$.s', _times: '10' }, invalid('_times'));
      await refuse('free-free-100', { _type: type, _path: '$.s' }, invalid('_type'));
    }
    for (const times of ['1', ''])
      await assertSigned(['text'], 'free-free-free', { _type: 'string', _path: '$.s', _times: times }, 'string');
  });

  it('`_path` is a JSONPath without scripts, filters and other extensions, of bounded length', async () => {
    const good: [string, bigint][] = [
      ['$.neg', -7n],
      ["$['x,y']", 4n],
      ['$.list[1]', 2n],
      ['$.list[-1:]', 3n],
      ['$..er.v', 9n],
      ['$.deep.*.v', 9n],
      ['big', 12345678901234567891n],
    ];
    for (const [path, value] of good) await assertSigned([value], 'int256-free-none', { _path: path });
    const bad = [
      ...['$.list[?(@ > 1)]', '$.list[(@.length-1)]', '$[?(process.exit())]', '$.list^', '$.list~', '$..`x`'],
      ...['$..*@number()', '$.', '$[', '', '*', '$$', '$.a,$.b', `$.${'a'.repeat(511)}`, `$${'.a'.repeat(2000)}`],
    ];
    for (const path of [...bad, 1, {}, ['$.v']]) await refuse('int256-free-none', { _path: path }, invalid('_path'));
  });

  it('lists of a requester must fit each other and what is pinned', async () => {
    const lists = { _type: 'int256,bool,string', _path: "$['x,y'],$.b,$.s", _times: '10,,' };
    await assertSigned([40n, true, 'text'], 'free-free-free', lists, 'int256,bool,string');
    const two = { _type: 'int256,int256', _path: '$.v,$.neg', _times: '10' };
    await assertSigned([15n, -70n], 'free-free-free', two, 'int256,int256');
    await assertSigned([-14n, true], 'pair', { _path: '$.neg,$.b', _times: '2,' }, 'int256,bool');
    await refuse('free-free-free', { ...lists, _path: '$.v,$.b' }, invalid('_path'));
    await refuse('free-free-free', { ...lists, _times: '1,' }, invalid('_times'));
    await refuse('free-free-free', { ...lists, _times: '1,2,' }, invalid('_times'));
    await refuse('free-v-none', { _type: 'int256,bool' }, invalid('_type'));
    await refuse('int256-free-none', { _path: '$.v,$.b' }, invalid('_path'));
    await refuse('pair', { _path: '$.v', _times: '' }, invalid('_path'));
    await refuse('pair', { _path: '$.v,$.b', _times: '2' }, invalid('_times'));
    await refuse('pair', { _path: '$.v,$.b', _times: ',,' }, invalid('_times'));
  });

  it('what the upstream value cannot be encoded as is 502, what is not there is named', async () => {
    for (const [type, path] of [
      ['address', '$.s'],
      ['uint256', '$.neg'],
      ['int256', '$.null'],
      ['int256', '$.list'],
    ])
      await refused(502, 'API call failed', 'free-free-none', { _type: type, _path: path });
    for (const path of ['$.none.x', '$.__proto__', '$.s.length', '$.constructor.name'])
      await refused(502, `No value found at path: ${path}`, 'free-free-none', { _type: 'string', _path: path });
  });

  it('`int8` is pinned, so a requester gets it although it is none of the seven', () =>
    assertSigned([-7n], 'int8-type', { _path: '$.neg', _type: 'int256' }, 'int8'));

  it('an endpoint without an encoding returns raw JSON whatever reserved parameters are sent (rule 6)', async () => {
    for (const parameters of [full, { _type: 1, _path: '$[?(', _times: {} }])
      assert.deepEqual(await raw('raw', parameters), JSON.parse(DATA));
  });

  it('whatever a requester sends costs bounded time and memory', async (t) => {
    const nested = `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`;
    const answers = {
      '/deep': faults.text(`[${Array(800).fill(nested).join(',')}]`),
      '/wide': faults.text(`[${Array(500_000).fill(0).join(',')}]`),
      '/text': faults.text(JSON.stringify('x'.repeat(1_000_000))),
    };
    const encoding = { type: '*', path: '*' };
    // Its own bounds are counted in steps: a busy machine must not come before them.
    const settings = { plugins: [{ source: 'builtin:encode-abi', timeout: 60_000 }] };
    const bounded = await served(
      t,
      { deep: { encoding }, wide: { encoding }, text: { encoding } },
      { answers, settings },
    );
    const paths = ['$..a..a..a..a', '$..*..*..*..b', `$${'..*'.repeat(100)}`];
    const slices = ['$..[0,0,0,0,0,0,0,0]..b', '$..[::-1]..[::-1]..b'];
    for (const endpoint of ['deep', 'wide'])
      for (const path of [...paths, ...slices]) {
        const response = await bounded.post(endpoint, { _type: 'int256', _path: path });
        const { error } = JSON.parse(await response.text());
        const allowed = [invalid('_path'), `No value found at path: ${path}`, 'API call failed', undefined];
        assert.ok(allowed.includes(error), `${endpoint} ${path}: ${error}`);
      }
    const lists = { _type: Array(146).fill('string').join(), _path: Array(146).fill('$').join() };
    await bounded.refused(502, 'API call failed', 'text', lists);
  });
});
