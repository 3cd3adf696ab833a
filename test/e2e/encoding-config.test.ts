/** A wrong encoding or encryption in the config is an error that names the place. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { errorsOf } from '../support/config.ts';

type Block = Readonly<Record<string, unknown>>;

const AT = 'apis[0].endpoints[0]';
const CONTRACT = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';
const FHE = {
  network: 'sepolia',
  rpcUrl: 'https://rpc.example',
  verifier: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
};

const errors = (encoding: unknown) => errorsOf(oneApi('http://upstream.example', { e: { encoding } }));
const encryptErrors = (endpoint: Block, settings: Block = { fhe: FHE }) =>
  errorsOf({ settings, ...oneApi('http://upstream.example', { e: endpoint }) });

/** The one error of an encoding, without its path up to the encoding. */
async function fault(encoding: unknown): Promise<string> {
  const lines = await errors(encoding);
  assert.equal(lines.length, 1, `${JSON.stringify(encoding)}: ${lines.join(' | ')}`);
  return (lines[0] ?? '').replace(`${AT}.encoding`, '');
}

describe('encoding blocks (specification: Encoding object; decisions, Encoding)', () => {
  const calculates =
    ".path: a path cannot calculate: write the path of one value, and multiply it by times; a name that holds such signs needs quotes, as in $['a + b']";

  it('`type` and `path` are both required (rule 1)', async () => {
    assert.match(await fault({ path: '$.a' }), /^\.type: /);
    assert.match(await fault({ type: 'int256' }), /^\.path: /);
    assert.equal((await errors({})).length, 2);
    assert.match(await fault({ type: '', path: '$.a' }), /^\.type: /);
    assert.match(await fault({ type: 'int256', path: '' }), /^\.path: /);
    assert.match(await fault({ type: 'int256', path: '$.a', multiplier: '1' }), /^\.multiplier: /);
  });

  it('a pinned type is any elementary ABI type', async () => {
    const sizes = Array.from({ length: 32 }, (_, i) => i + 1);
    const types = [
      ...sizes.flatMap((n) => [`int${n * 8}`, `uint${n * 8}`, `bytes${n}`]),
      ...['bool', 'address', 'string', 'bytes', '*'],
    ];
    const endpoints = Object.fromEntries(types.map((type) => [`e-${type}`, { encoding: { type, path: '$.a' } }]));
    assert.deepEqual(await errorsOf(oneApi('http://upstream.example', endpoints)), []);
  });

  it('nothing else is a type', async () => {
    const types = ['int', 'uint', 'int7', 'int0', 'int264', 'bytes0', 'bytes33', 'byte', 'fixed', 'function', 'tuple'];
    for (const type of [...types, 'uint256[]', 'Uint256', 'constructor', 'int256,', 'int256,*', 'int256;bool']) {
      assert.match(await fault({ type, path: '$.a' }), /^\.type: /, type);
    }
  });

  it('what other languages call a type, or is misspelt, has a suggestion', async () => {
    const kept = ' Fractions are kept with times, such as 1e18';
    const rows: [string, string][] = [
      ['number', `, did you mean "int256"?${kept}`],
      ['Float', `, did you mean "int256"?${kept}`],
      ['integer', ', did you mean "int256"?'],
      ['uint', ', did you mean "uint256"?'],
      ['boolean', ', did you mean "bool"?'],
      ['Uint256', ', did you mean "uint256"?'],
      ['strng', ', did you mean "string"?'],
      ['adress', ', did you mean "address"?'],
      ['bytes33', ': bytes1 to bytes32'],
      ['uint257', ': uint8 to uint256, in steps of 8'],
      ['int7', ': int8 to int256, in steps of 8'],
      ['constructor', ': write one of the elementary ABI types, such as int256, bool, bytes32 or string'],
    ];
    for (const [type, suggestion] of rows) {
      assert.equal(await fault({ type, path: '$.a' }), `.type: "${type}" is no type${suggestion}`);
    }
  });

  it('a pinned path is a JSONPath', async () => {
    for (const path of ['$', '$.a.b', "$['a,b']", '$..a', '$.a[0]', '$.a[-1:]', '$.list[?(@.ok)].v', '*', 'a.b']) {
      assert.deepEqual(await errors({ type: 'int256', path }), [], path);
    }
    for (const path of ['$.', '$[', '$.a[', 'a..', '$$', '$.a[?(', '[']) {
      assert.match(await fault({ type: 'int256', path }), /^\.path: /, path);
    }
  });

  it('a path that calculates with a number of any form is none', async () => {
    const numbers = ['$.a / 1e18', '$.a * 1e18', '$.a / 1_000', '$.a / .5', '$.a + 1%', '$.a * -1', '$.a ** 2'];
    for (const path of [...numbers, '$.a / (10)', '$.a.toFixed(2)', '$.a.floor()'])
      assert.equal(await fault({ type: 'int256', path }), calculates, path);
  });

  it('a path that calculates is none; names that look alike are (cases, row 2)', async () => {
    const sums = ['$.a + $.b', '($.a+$.b)/2', '$.a-$.b', '$.a * $.b', '$.a/$.b', "$['a'] + $['b']", '$.a[0]+$.b[0]'];
    const factors = ['$.a*2', '$.a * 1000', '$.a[0] / 100', '2 * $.a', '100/$.a', '-$.a', '$.a + 1', 'round($.a)'];
    const functions = [
      '$.a.sum()',
      '$.prices[*].max()',
      'avg($.a,$.b)',
      'length($.a)',
      '(a+b)/2',
      '$.a.toFixed(2)',
      '$.a.floor()',
    ];
    for (const path of [...sums, ...factors, ...functions])
      assert.equal(await fault({ type: 'int256', path }), calculates, path);
    assert.equal(await fault({ type: 'int256,int256', path: '$.c,$.a + $.b' }), calculates);
    const names = [
      '$.a+b',
      '$.eth-usd',
      '$.BTC/USD',
      '$.BTC / USD',
      '$.a/24h',
      '$.7d-30',
      '$.a-$b',
      '$.a.$ref',
      '$.a$.b',
    ];
    const others = [
      "$['a + $.b']",
      '$.list[?(@.a + @.b > 2)].v',
      '$.list[?(@.a == @root.b)].v',
      '$.list[?(@.a*2 > 1)].v',
    ];
    for (const path of [...names, ...others]) assert.deepEqual(await errors({ type: 'int256', path }), [], path);
  });

  it('a parameter in a path must be declared; one in quotes is a name (cases, row 1)', async () => {
    const takes = (name: string) =>
      `.path: holds {${name}}, and no parameter is called so: declare it, with in: none if it is not sent, or write ['{${name.trim()}}'] for a member of that name`;
    for (const path of [
      '$.{id}',
      '$.a.{id}.b',
      '$.a{id}',
      '$[{id}]',
      '$.{{id}}',
      '$.l[?(@.a == {id})].v',
      '$.l[?(@.b[0] == {id})]',
    ])
      assert.equal(await fault({ type: 'int256', path }), takes('id'), path);
    for (const [path, name] of [
      ['$.{ids}.{vs}', 'ids'],
      ['{vs-currency}.usd', 'vs-currency'],
      ['$.{ id }', ' id '],
    ] as const)
      assert.equal(await fault({ type: 'int256', path }), takes(name), path);
    for (const path of ["$['{id}']", '$.l[?(@.a == "{id}")].v', '$.{1}'])
      assert.deepEqual(await errors({ type: 'int256', path }), [], path);
  });

  it('`times` on a type that is no integer is rejected, whatever the rest', async () => {
    for (const type of ['bool', 'address', 'string', 'bytes', 'bytes32']) {
      for (const times of ['1e18', '1', '0.5', '*']) {
        for (const path of ['$.a', '*']) {
          assert.equal(await fault({ type, path, times }), `.times: only integers can be multiplied, not ${type}`);
        }
      }
    }
    for (const type of ['int8', 'uint256', '*']) {
      for (const times of ['1e18', '1', '0.5', '*']) assert.deepEqual(await errors({ type, path: '$.a', times }), []);
    }
    assert.equal(
      await fault({ type: 'int256,bool', path: '$.a,$.b', times: '10' }),
      '.times: only integers can be multiplied, not bool',
    );
    assert.equal(
      await fault({ type: 'int256,bool', path: '*', times: ',10' }),
      '.times: only integers can be multiplied, not bool',
    );
    assert.deepEqual(await errors({ type: 'int256,bool', path: '$.a,$.b', times: '10,' }), []);
    assert.deepEqual(await errors({ type: 'int256,bool', path: '$.a,$.b', times: '*' }), []);
    assert.deepEqual(await errors({ type: 'bool', path: '$.a', times: '' }), []);
  });

  it('`times` is a number that a 256-bit integer has room for', async () => {
    for (const times of ['1e77', '1e-77', '-1', '+1', '0', '0.1', '123456789012345678901234567890']) {
      assert.deepEqual(await errors({ type: 'int256', path: '$.a', times }), [], times);
    }
    for (const times of [
      'x',
      '1e78',
      '1e-78',
      '0x10',
      '1e',
      'Infinity',
      'NaN',
      '1 000',
      '1e999999999',
      '9'.repeat(101),
    ]) {
      assert.match(await fault({ type: 'int256', path: '$.a', times }), /^\.times: /, times);
    }
  });

  it('`type` and `path` have the same length, `times` that length or a single value', async () => {
    const good: [string, string, string | undefined][] = [
      ['int256,bool', '$.a,$.b', undefined],
      ['int256,uint8', '$.a,$.b', '10'],
      ['int256,uint8', '$.a,$.b', '10,100'],
      ['int256,uint8,int8', '$.a,$.b,$.c', ',10,'],
      ['int256 , bool', ' $.a , $.b ', undefined],
      ['int256,bool', "$['a,b'],$[0,1]", undefined],
      ['int256,bool', '$["x\\",y"],$.list[?(@.a == "1,2" && [1,2].includes(@.b))]', undefined],
    ];
    for (const [type, path, times] of good) {
      assert.deepEqual(
        await errors({ type, path, ...(times === undefined ? {} : { times }) }),
        [],
        `${type} ${path} ${times}`,
      );
    }
    assert.equal(
      await fault({ type: 'int256,bool', path: '$.a' }),
      '.path: lists 1 value, and type lists 2 values: write one type for each path',
    );
    assert.equal(
      await fault({ type: 'int256', path: '$.a,$.b' }),
      '.path: lists 2 values, and type lists 1 value: write one type for each path',
    );
    assert.equal(
      await fault({ type: 'int256,bool', path: '$.a,$.b', times: '1,,' }),
      '.times: lists 3 multipliers, and type lists 2 values: write one for all, or one for each',
    );
    assert.equal(
      await fault({ type: 'int256', path: '$.a', times: '1,2' }),
      '.times: lists 2 multipliers, and type lists 1 value: write one for all, or one for each',
    );
  });

  it('lists that can never fit are errors although a part of the encoding is delegated', async () => {
    assert.equal(
      await fault({ type: '*', path: '$.a,$.b', times: '1,2,3' }),
      '.times: lists 3 multipliers, and path lists 2 values: write one for all, or one for each',
    );
    assert.equal(
      await fault({ type: 'int256', path: '$.a,$.b', times: '*' }),
      '.path: lists 2 values, and type lists 1 value: write one type for each path',
    );
    assert.equal(
      await fault({ type: 'int8,int8', path: '*', times: '1,2,3' }),
      '.times: lists 3 multipliers, and type lists 2 values: write one for all, or one for each',
    );
    assert.deepEqual(await errors({ type: '*', path: '*', times: '1,2,3' }), []);
  });
});

describe('encrypt blocks (specification: Encrypt object)', () => {
  const encoding = { type: 'uint256', path: '$.a' };
  const encrypt = { type: 'euint64', contract: CONTRACT };

  it('take one of six types and a contract, for one pinned 256-bit integer', async () => {
    for (const type of ['euint8', 'euint16', 'euint32', 'euint64', 'euint128', 'euint256']) {
      for (const encoded of ['int256', 'uint256']) {
        const endpoint = { encoding: { ...encoding, type: encoded }, encrypt: { ...encrypt, type } };
        assert.deepEqual(await encryptErrors(endpoint), []);
      }
    }
    for (const type of ['euint4', 'uint64', 'ebool', 'eaddress']) {
      const [line = '', ...rest] = await encryptErrors({ encoding, encrypt: { ...encrypt, type } });
      assert.match(line, /^apis\[0\]\.endpoints\[0\]\.encrypt\.type: /);
      assert.deepEqual(rest, []);
    }
    assert.equal((await encryptErrors({ encoding, encrypt: { type: 'euint64' } })).length, 1);
    assert.equal((await encryptErrors({ encoding, encrypt: { contract: CONTRACT } })).length, 1);
  });

  it('require `settings.fhe`', async () => {
    for (const settings of [{}, { fhe: 'none' }]) {
      assert.deepEqual(await encryptErrors({ encoding, encrypt }, settings), [`${AT}.encrypt: requires settings.fhe`]);
    }
  });

  it('require an encoding of type int256 or uint256 with a path of its own', async () => {
    const wrongType = `${AT}.encrypt: requires an encoding with type int256 or uint256`;
    assert.deepEqual(await encryptErrors({ encrypt }), [wrongType]);
    for (const type of ['bool', 'uint8', 'uint128', 'bytes32', '*']) {
      assert.deepEqual(await encryptErrors({ encoding: { ...encoding, type }, encrypt }), [wrongType]);
    }
    assert.deepEqual(await encryptErrors({ encoding: { type: 'uint256,uint256', path: '$.a,$.b' }, encrypt }), [
      wrongType,
    ]);
    assert.deepEqual(await encryptErrors({ encoding: { ...encoding, path: '*' }, encrypt }), [
      `${AT}.encrypt: requires an encoding with a path of its own`,
    ]);
  });

  it('a contract has no case, or the right checksum (decisions, Configuration)', async () => {
    for (const contract of [CONTRACT.toLowerCase(), `0x${CONTRACT.slice(2).toUpperCase()}`]) {
      assert.deepEqual(await encryptErrors({ encoding, encrypt: { ...encrypt, contract } }), []);
    }
    const contract = CONTRACT.replace('CdD', 'cdD');
    assert.deepEqual(await encryptErrors({ encoding, encrypt: { ...encrypt, contract } }), [
      `${AT}.encrypt.contract: the checksum of the address is wrong (EIP-55)`,
    ]);
    for (const wrong of ['0x12', CONTRACT.slice(2), `${CONTRACT}00`, '', 'vitalik.eth']) {
      const lines = await encryptErrors({ encoding, encrypt: { ...encrypt, contract: wrong } });
      assert.equal(lines.length, 1, wrong);
      assert.match(lines[0] ?? '', /^apis\[0\]\.endpoints\[0\]\.encrypt\.contract: /);
    }
  });

  it("so have the verifier's and the attestors' addresses", async () => {
    const verifier = FHE.verifier.replace('C5', 'c5');
    assert.deepEqual(await encryptErrors({}, { fhe: { ...FHE, verifier } }), [
      'settings.fhe.verifier: the checksum of the address is wrong (EIP-55)',
    ]);
    const proof = { type: 'reclaim', gatewayUrl: 'https://gateway.example', attestors: [CONTRACT, verifier] };
    assert.deepEqual(await encryptErrors({}, { proof }), [
      'settings.proof.attestors[1]: the checksum of the address is wrong (EIP-55)',
    ]);
  });

  it('the relayer and the proof gateway are `none` or a block with known keys', async () => {
    for (const settings of [
      { fhe: 'none', proof: 'none' },
      { fhe: { ...FHE, apiKey: 'k', relayerUrl: 'https://r.example', timeout: 1 } },
    ]) {
      assert.deepEqual(await encryptErrors({}, settings), []);
    }
    const wrong: Block[] = [
      { fhe: 'off' },
      { fhe: { ...FHE, network: 'goerli' } },
      { fhe: { ...FHE, rpcUrl: 'ws://rpc.example' } },
      { fhe: { network: 'sepolia', rpcUrl: 'https://rpc.example' } },
      { fhe: { ...FHE, timeout: 0 } },
      { fhe: { ...FHE, apikey: 'k' } },
      { proof: 'reclaim' },
      { proof: { type: 'tlsn', gatewayUrl: 'https://g.example' } },
      { proof: { type: 'reclaim' } },
      { proof: { type: 'reclaim', gatewayUrl: 'https://g.example', attestors: [] } },
    ];
    for (const settings of wrong) {
      const lines = await encryptErrors({}, settings);
      assert.equal(lines.length, 1, `${JSON.stringify(settings)}: ${lines.join(' | ')}`);
    }
  });
});
