/** Requesters choose the encodings that operators leave to them, and no others. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { AbiCoder, encodeBytes32String } from 'ethers';
import { oneApi } from '../support/answers.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults, startUpstream, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

const coder = AbiCoder.defaultAbiCoder();

const DATA = `{"v":1.5,"big":12345678901234567891,"neg":-7,"s":"text","b":true,"a":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  "list":[1,2,3],"x,y":4,"deep":{"er":{"v":9}},"null":null}`;

const full = { _type: 'int256', _path: '$.v', _times: '10' };

describe('delegated encodings', async () => {
  const upstream = await upstreamFor(suite);
  upstream.on('*', faults.text(DATA));
  // Every combination of what is pinned, what is delegated, and times that is left out.
  const combinations = ['int256', '*'].flatMap((type) =>
    ['$.v', '*'].flatMap((path) =>
      ['100', '*', undefined].map((times) => ({ type, path, ...(times === undefined ? {} : { times }) })),
    ),
  );
  const name = ({ type, path, times = 'none' }: { type: string; path: string; times?: string }) =>
    [type, path, times].map((text) => (text === '*' ? 'free' : text.replace('$.', ''))).join('-');
  const endpoints = Object.fromEntries(combinations.map((encoding) => [name(encoding), { encoding }]));
  const service = await serviceFor(
    suite,
    oneApi(upstream.url, {
      ...endpoints,
      'int8-type': { encoding: { type: 'int8', path: '*' } },
      pair: { encoding: { type: 'int256,bool', path: '*', times: '*' } },
      raw: {},
    }),
  );

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const decoded = async (endpoint: string, parameters: unknown, types = ['int256']) => {
    const { data } = await verifyEncoded(await service.post(`api/${endpoint}`, parameters), TEST_ADDRESS);
    return coder.decode(types, data).toArray();
  };
  const refuse = async (endpoint: string, parameters: unknown, error: string) => {
    await assertRefused(await service.post(`api/${endpoint}`, parameters), 400, error);
    assert.equal(upstream.requests.length, 0, 'before any upstream call');
  };
  const missing = (name: string) => `Endpoint requires \`${name}\` request parameter`;
  const invalid = (name: string) => `Invalid \`${name}\` request parameter`;

  it('every combination takes what it delegates from the request and ignores the rest', async () => {
    const cases: [string, bigint][] = [
      ['int256-v-none', 1n],
      ['int256-v-100', 150n],
      ['int256-v-free', 15n],
      ['int256-free-none', -7n],
      ['int256-free-100', -700n],
      ['int256-free-free', -70n],
      ['free-v-none', 1n],
      ['free-v-100', 150n],
      ['free-v-free', 15n],
      ['free-free-none', -7n],
      ['free-free-100', -700n],
      ['free-free-free', -70n],
    ];
    for (const [endpoint, value] of cases) {
      assert.deepEqual(await decoded(endpoint, { _type: 'int256', _path: '$.neg', _times: '10' }), [value], endpoint);
    }
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
    for (const [type, path, value] of good) {
      assert.deepEqual(await decoded('free-free-none', { _type: type, _path: path }, [type]), [value]);
    }
    upstream.requests.length = 0;
    for (const type of [
      'int8',
      'uint128',
      'bytes4',
      'int',
      'float',
      '*',
      '',
      'int256,',
      'INT256',
      'toString',
      'x'.repeat(2000),
    ]) {
      await refuse('free-free-none', { _type: type, _path: '$.v' }, invalid('_type'));
    }
    for (const type of [1, true, [], {}, ['int256']])
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
    for (const [times, value] of good)
      assert.deepEqual(await decoded('int256-v-free', { _times: times }), [value], String(times));
    upstream.requests.length = 0;
    for (const times of [
      'x',
      '1e78',
      '1e-78',
      '1e999999999',
      '9'.repeat(101),
      '0x10',
      'NaN',
      '1,2',
      ' ,',
      true,
      [],
      {},
      [1],
    ]) {
      await refuse('int256-v-free', { _times: times }, invalid('_times'));
    }
    for (const type of ['string', 'bool', 'bytes', 'bytes32', 'address']) {
      await refuse('free-free-free', { _type: type, _path: '$.s', _times: '10' }, invalid('_times'));
      await refuse('free-free-100', { _type: type, _path: '$.s' }, invalid('_type'));
    }
    assert.deepEqual(await decoded('free-free-free', { _type: 'string', _path: '$.s', _times: '1' }, ['string']), [
      'text',
    ]);
    assert.deepEqual(await decoded('free-free-free', { _type: 'string', _path: '$.s', _times: '' }, ['string']), [
      'text',
    ]);
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
    for (const [path, value] of good)
      assert.deepEqual(await decoded('int256-free-none', { _path: path }), [value], path);
    upstream.requests.length = 0;
    const bad = [
      '$.list[?(@ > 1)]',
      '$.list[(@.length-1)]',
      '$[?(process.exit())]',
      '$.list^',
      '$.list~',
      '$..`x`',
      '$..*@number()',
      '$.',
      '$[',
      '',
      '*',
      '$$',
      '$.a,$.b',
      `$.${'a'.repeat(511)}`,
      `$${'.a'.repeat(2000)}`,
    ];
    for (const path of bad) await refuse('int256-free-none', { _path: path }, invalid('_path'));
    for (const path of [1, null, {}, ['$.v']]) {
      await refuse('int256-free-none', { _path: path }, path === null ? missing('_path') : invalid('_path'));
    }
  });

  it('lists of a requester must fit each other and what is pinned', async () => {
    const lists = { _type: 'int256,bool,string', _path: "$['x,y'],$.b,$.s", _times: '10,,' };
    assert.deepEqual(await decoded('free-free-free', lists, ['int256', 'bool', 'string']), [40n, true, 'text']);
    assert.deepEqual(
      await decoded('free-free-free', { _type: 'int256,int256', _path: '$.v,$.neg', _times: '10' }, [
        'int256',
        'int256',
      ]),
      [15n, -70n],
    );
    assert.deepEqual(await decoded('pair', { _path: '$.neg,$.b', _times: '2,' }, ['int256', 'bool']), [-14n, true]);
    upstream.requests.length = 0;
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
    const ask = (parameters: unknown) => service.post('api/free-free-none', parameters);
    await assertRefused(await ask({ _type: 'address', _path: '$.s' }), 502, 'API call failed');
    await assertRefused(await ask({ _type: 'uint256', _path: '$.neg' }), 502, 'API call failed');
    await assertRefused(await ask({ _type: 'int256', _path: '$.null' }), 502, 'API call failed');
    await assertRefused(await ask({ _type: 'int256', _path: '$.list' }), 502, 'API call failed');
    await assertRefused(await ask({ _type: 'int256', _path: '$.none.x' }), 502, 'No value found at path: $.none.x');
    await assertRefused(
      await ask({ _type: 'int256', _path: '$.__proto__' }),
      502,
      'No value found at path: $.__proto__',
    );
    await assertRefused(await ask({ _type: 'int256', _path: '$.s.length' }), 502, 'No value found at path: $.s.length');
    await assertRefused(
      await ask({ _type: 'string', _path: '$.constructor.name' }),
      502,
      'No value found at path: $.constructor.name',
    );
  });

  it('`int8` is pinned, so a requester gets it although it is none of the seven', async () => {
    assert.deepEqual(await decoded('int8-type', { _path: '$.neg', _type: 'int256' }, ['int8']), [-7n]);
  });

  it('an endpoint without an encoding returns raw JSON whatever reserved parameters are sent (rule 6)', async () => {
    const { rawData } = await verifyRaw(await service.post('api/raw', full), TEST_ADDRESS);
    assert.deepEqual(rawData, JSON.parse(DATA));
    await verifyRaw(await service.post('api/raw', { _type: 1, _path: '$[?(', _times: {} }), TEST_ADDRESS);
  });

  it('whatever a requester sends costs bounded time and memory', async () => {
    const costly = await startUpstream();
    const nested = `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`;
    costly.on('/deep', faults.text(`[${Array(800).fill(nested).join(',')}]`));
    costly.on('/wide', faults.text(`[${Array(500_000).fill(0).join(',')}]`));
    costly.on('/text', faults.text(JSON.stringify('x'.repeat(1_000_000))));
    const encoding = { type: '*', path: '*' };
    // Its own bounds are counted in steps: a busy machine must not come before them.
    const settings = { plugins: [{ source: 'builtin:encode-abi', timeout: 60_000 }] };
    const bounded = await startTestService(
      oneApi(costly.url, { deep: { encoding }, wide: { encoding }, text: { encoding } }, { settings }),
    );
    try {
      const paths = [
        '$..a..a..a..a',
        '$..*..*..*..b',
        `$${'..*'.repeat(100)}`,
        '$..[0,0,0,0,0,0,0,0]..b',
        '$..[::-1]..[::-1]..b',
      ];
      for (const endpoint of ['api/deep', 'api/wide']) {
        for (const path of paths) {
          const response = await bounded.post(endpoint, { _type: 'int256', _path: path });
          const { error } = JSON.parse(await response.text());
          const allowed = [invalid('_path'), `No value found at path: ${path}`, 'API call failed', undefined];
          assert.ok(allowed.includes(error), `${endpoint} ${path}: ${error}`);
        }
      }
      const many = 146;
      const lists = { _type: Array(many).fill('string').join(','), _path: Array(many).fill('$').join(',') };
      await assertRefused(await bounded.post('api/text', lists), 502, 'API call failed');
    } finally {
      await bounded.stop();
      await costly.close();
    }
  });
});
