/** Commands with --json print JSON that tools can rely on, errors included. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { AbiCoder, getBytes, solidityPackedKeccak256, toUtf8Bytes, Wallet } from 'ethers';
import { faults, upstreamFor } from '../support/upstream.ts';
import { folderWith, runCli } from './run.ts';
import { configText, endpointId, specifications } from './service-config.ts';

/** Programs read `--json`: stdout holds one JSON object, whatever happens, and stderr nothing. */
async function runJson(t: TestContext, files: Readonly<Record<string, string>>, ...words: string[]) {
  const cwd = await folderWith(t, files);
  const { code, stdout, stderr } = await runCli(t, [...words, '--json'], { cwd });
  assert.match(stdout, /^\{.*\}\n$/);
  return { cwd, code, stderr, result: JSON.parse(stdout) };
}

const { eth, all } = specifications();
const wallet = new Wallet(`0x${'11'.repeat(32)}`);
const TIMESTAMP = 1_767_225_600;

function digestOf(id: string, data: string): string {
  return solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [id, TIMESTAMP, data]);
}

/** A signed answer of an endpoint, as a file has it. */
async function answer(types: readonly string[], values: readonly unknown[], id = endpointId(eth)) {
  const data = AbiCoder.defaultAbiCoder().encode(types, values);
  const digest = digestOf(id, data);
  const signature = await wallet.signMessage(getBytes(digest));
  const file = JSON.stringify({ node: wallet.address, endpointId: id, timestamp: TIMESTAMP, data, signature });
  return { file, data, digest, signature };
}

describe('config validate --json', () => {
  it('has endpoints, warnings and recommendations', async (t) => {
    const text = configText().replace('    auth: { type: free }\n', '').replace('prices\n', '"p\\u202e"\n');
    const { code, stderr, result } = await runJson(t, { 'c.yaml': text }, 'config', 'validate', '-c', 'c.yaml');
    assert.deepEqual([code, stderr], [0, '']);
    const [warning, ...others] = result.warnings;
    assert.deepEqual(Object.keys(warning), ['message', 'path', 'where']);
    assert.deepEqual(
      [warning.path, warning.where, others.length],
      ['apis[0].endpoints[0]', 'p\u202e/eth, line 8', result.warnings.length - 1],
    );
    assert.deepEqual(result, {
      ok: true,
      endpoints: [
        { api: 'p\u202e', endpoint: 'eth', endpointId: endpointId(eth) },
        { api: 'p\u202e', endpoint: 'all', endpointId: endpointId(all) },
      ],
      warnings: result.warnings,
      recommendations: [
        'encoding for p\u202e/all: raw answers carry numbers as doubles, an encoding signs every digit',
      ],
    });
  });

  it('has with --explain what was hashed', async (t) => {
    const words = ['config', 'validate', '-c', 'c.yaml', '--explain'];
    const { result } = await runJson(t, { 'c.yaml': configText() }, ...words);
    assert.deepEqual(
      result.endpoints.map(({ explained }: { explained: string }) => explained),
      [eth, all],
    );
  });

  it('has every error with its place', async (t) => {
    const text = configText().replace('encoding:', 'encodign:').replace('path: /all', 'path: 7');
    const { code, stderr, result } = await runJson(t, { 'c.yaml': text }, 'config', 'validate', '-c', 'c.yaml');
    assert.deepEqual([code, stderr], [1, '']);
    assert.deepEqual(result, {
      ok: false,
      errors: [
        {
          message: 'unknown key, did you mean "encoding"?',
          path: 'apis[0].endpoints[0].encodign',
          where: 'prices/eth, line 11',
        },
        {
          message: 'expected a string, found a number, write it in quotes',
          path: 'apis[0].endpoints[1].path',
          where: 'prices/all, line 13',
        },
      ],
    });
  });

  it('has a file that is not there, and mistakes on the command line', async (t) => {
    const missing = await runJson(t, {}, 'config', 'validate', '-c', 'no.yaml');
    const file = join(missing.cwd, 'no.yaml');
    assert.deepEqual(missing.result, { ok: false, errors: [{ message: 'file not found', path: file }] });
    const usage = await runJson(t, {}, 'config', 'validate');
    assert.deepEqual(usage.result.errors, [{ message: 'missing required option -c, --config <file>' }]);
    assert.deepEqual([missing.code, usage.code], [1, 1]);
  });

  it('keeps what a plugin prints out of stdout', async (t) => {
    const files = {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./chatty.mjs }] }'),
      'chatty.mjs': 'console.log("hello"); export default { name: "chatty", hooks: { onResponseSent() {} } };',
    };
    const { code, stderr, result } = await runJson(t, files, 'config', 'validate', '-c', 'c.yaml');
    assert.deepEqual([code, stderr, result.ok], [0, 'hello\n', true]);
  });
});

describe('verify --json', () => {
  it('has what the answer says, its value decoded by --type', async (t) => {
    const { file, data, digest, signature } = await answer(['int256', 'string'], [-7n, 'a "b"\n']);
    const words = ['verify', 'a.json', '--type', 'int256,string'];
    const { code, stderr, result } = await runJson(t, { 'a.json': file }, ...words);
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(result, {
      ...{ ok: true, signer: wallet.address, pinned: false, digest, endpointId: endpointId(eth) },
      ...{ timestamp: TIMESTAMP, signedData: data, signature, kind: 'encoded', data },
      values: [
        { type: 'int256', value: '-7' },
        { type: 'string', value: 'a "b"\n' },
      ],
    });
  });

  it('decodes by the endpoint of the config, which says what the value was multiplied by', async (t) => {
    const { file } = await answer(['int256'], [1_500_000_000_000_000_000n]);
    const files = { 'a.json': file, 'c.yaml': configText() };
    const { result } = await runJson(t, files, 'verify', 'a.json', '-c', 'c.yaml');
    assert.deepEqual(result.values, [{ type: 'int256', value: '1500000000000000000', times: '1e18' }]);
    const cwd = await folderWith(t, files);
    const { stdout } = await runCli(t, ['verify', 'a.json', '-c', 'c.yaml'], { cwd });
    assert.match(stdout, /\nValue: 1500000000000000000 \(int256 × 1e18\)\n$/);
  });

  it('has the class of a refusal', async (t) => {
    const { file } = await answer(['int256'], [1n]);
    const other = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
    const { cwd, code, stderr, result } = await runJson(t, { 'a.json': file }, 'verify', 'a.json', '--node', other);
    const message = `${join(cwd, 'a.json')}: the response is signed by ${wallet.address}, not by ${other}`;
    assert.deepEqual([code, stderr], [1, '']);
    assert.deepEqual(result, { ok: false, errors: [{ message, reason: 'node' }] });
  });

  it('says why a value cannot be shown', async (t) => {
    const wide = await answer(['uint256'], [256n]);
    const strange = await answer(['uint256'], [1n], `0x${'ab'.repeat(32)}`);
    const open = configText().replace("type: int256, path: $.price, times: '1e18'", "type: '*', path: $.price");
    const openId = toUtf8Bytes(eth.replace(',"times":"1e18"', ',"times":null').replace('"int256"', '"*"'));
    const chosen = await answer(['uint256'], [1n], endpointId(new TextDecoder().decode(openId)));
    const raw = { node: wallet.address, endpointId: endpointId(all), timestamp: TIMESTAMP, rawData: {} };
    const hash = solidityPackedKeccak256(['string'], ['{}']);
    const signature = await wallet.signMessage(getBytes(digestOf(endpointId(all), hash)));
    const files = {
      ...{ 'wide.json': wide.file, 'strange.json': strange.file, 'chosen.json': chosen.file },
      ...{ 'raw.json': JSON.stringify({ ...raw, signature }), 'c.yaml': configText(), 'open.yaml': open },
    };
    const cases: readonly (readonly [words: readonly string[], error: (cwd: string) => string])[] = [
      [
        ['wide.json', '--type', 'uint8'],
        (cwd) => `${cwd}/wide.json: data is no ABI encoding of uint8: it has other types, or is encrypted`,
      ],
      [
        ['strange.json', '-c', 'c.yaml'],
        (cwd) =>
          `${cwd}/strange.json: the response is of endpoint 0x${'ab'.repeat(32)}, which ${cwd}/c.yaml does not have`,
      ],
      [
        ['chosen.json', '-c', 'open.yaml'],
        (cwd) => `${cwd}/chosen.json: requesters choose the type of prices/eth: say it with --type`,
      ],
      [
        ['raw.json', '--type', 'bool'],
        (cwd) => `${cwd}/raw.json: rawData is JSON, which has no types: leave --type out`,
      ],
    ];
    for (const [words, error] of cases) {
      const { cwd, code, result } = await runJson(t, files, 'verify', ...words);
      assert.deepEqual([code, result], [1, { ok: false, errors: [{ message: error(cwd) }] }]);
    }
    const { result } = await runJson(t, files, 'verify', 'raw.json', '-c', 'c.yaml');
    assert.deepEqual([result.kind, result.json, result.values], ['raw', '{}', undefined]);
  });

  it('says which option has no sense', async (t) => {
    const { file } = await answer(['uint256'], [256n]);
    const cases: readonly (readonly [words: readonly string[], message: string])[] = [
      [['uint7'], 'option --type <types> must be elementary ABI types, such as int256 or uint8,string'],
      [['uint8', '-c', 'c.yaml'], 'only one of --type and --config can be given: each says which types the value has'],
    ];
    for (const [words, message] of cases) {
      const files = { 'wide.json': file, 'c.yaml': configText() };
      const { code, result } = await runJson(t, files, 'verify', 'wide.json', '--type', ...words);
      assert.deepEqual([code, result], [1, { ok: false, errors: [{ message }] }]);
    }
  });
});

describe('plugins --json', () => {
  it('has stages, routes and observers', async (t) => {
    const files = {
      'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./full.mjs, timeout: 250 }] }'),
      'full.mjs': `const routes = [{ method: 'POST', path: '/full', admit: true, handle: () => ({ status: 200, body: '' }) }];
        export default { name: 'full', setup: () => ({ observe: {}, routes, hooks: { onError() {} } }) };`,
    };
    const { code, stderr, result } = await runJson(t, files, 'plugins', '-c', 'c.yaml');
    assert.deepEqual([code, stderr, Object.keys(result)], [0, '', ['ok', 'stages', 'routes', 'observers']]);
    const under = (name: string) => result.stages.find(({ stage }: { stage: string }) => stage === name);
    assert.deepEqual(under('onError'), {
      stage: 'onError',
      fails: 'open',
      plugins: [{ plugin: 'full', budget: 250, isolated: false }],
    });
    assert.deepEqual(under('authenticate').plugins[0], {
      ...{ plugin: 'auth-free', variant: 'free' },
      ...{ budget: 1000, isolated: false },
    });
    assert.deepEqual(result.routes.at(-1), { method: 'POST', path: '/full', plugin: 'full', budget: 250, admit: true });
    assert.deepEqual(result.observers, ['request-log', 'full']);
  });

  it('has what is wrong with the config', async (t) => {
    const text = configText().replace("version: '1.0'", '');
    const { code, stderr, result } = await runJson(t, { 'c.yaml': text }, 'plugins', '-c', 'c.yaml');
    assert.deepEqual([code, stderr, result.ok, result.errors[0].path], [1, '', false, 'version']);
  });
});

describe('import --json', () => {
  const document = {
    openapi: '3.0.3',
    info: { title: 'Coins', version: '1' },
    servers: [{ url: 'https://coins.example' }],
    paths: {
      '/price': {
        get: { parameters: [{ name: 'filter', in: 'query', schema: { type: 'object' } }], responses: {} },
        head: { responses: {} },
      },
    },
  };
  const files = { 'api.json': JSON.stringify(document) };
  const leftOut = [
    {
      ...{ what: 'query parameter "filter"', at: 'GET /price' },
      reason: 'is an object, which only JSON can carry',
    },
    { at: 'HEAD /price', reason: 'the method HEAD cannot be configured' },
  ];

  it('has the config, or where it is, and what was left out', async (t) => {
    const { cwd, code, stderr, result } = await runJson(t, files, 'import', 'api.json');
    assert.deepEqual([code, stderr], [0, '']);
    const { config, ...told } = result;
    assert.match(config, /\n {8}path: \/price\n$/);
    assert.deepEqual(told, { ok: true, added: 1, notes: [], leftOut });
    const { stdout } = await runCli(t, ['import', 'api.json', '--out', 'c.yaml', '--json'], { cwd });
    assert.deepEqual(JSON.parse(stdout), { ok: true, file: join(cwd, 'c.yaml'), added: 1, notes: [], leftOut });
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), config);
  });

  it('has the reasons why there is nothing', async (t) => {
    const { code, stderr, result } = await runJson(t, files, 'import', 'api.json', '--only', 'HEAD');
    assert.deepEqual([code, stderr], [1, '']);
    assert.deepEqual(result.errors, [
      { message: 'HEAD /price: the method HEAD cannot be configured' },
      { message: 'api.json: no endpoint can be made of it, for the reasons above' },
    ]);
  });
});

describe('try --json', () => {
  it('has the answer, its values, and what each would sign', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 12.5, at: null, name: 'ETH' }) });
    const endpoint = { name: 'eth', path: '/p', encoding: { type: 'int256', path: '$.name' } };
    const apis = [{ name: 'p', url: upstream.url, auth: { type: 'free' }, endpoints: [endpoint] }];
    const words = ['try', 'p/eth', '-c', 'c.yaml'];
    const files = { 'c.yaml': JSON.stringify({ version: '1.0', apis }) };
    const { code, stderr, result } = await runJson(t, files, ...words);
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(result, {
      ok: true,
      request: { method: 'GET', url: `${upstream.url}/p` },
      data: { at: null, name: 'ETH', price: 12.5 },
      values: [
        { path: '$.name', value: 'ETH', type: 'string', signs: '"ETH"' },
        { path: '$.price', value: 12.5, type: 'int256', times: '1e18', signs: '12500000000000000000' },
      ],
      own: { type: 'int256', path: '$.name', refused: result.own.refused },
    });
    assert.equal(typeof result.own.refused, 'string');
    upstream.on('*', faults.serverError());
    const failed = await runJson(t, files, ...words);
    const message = 'p/eth: 502 API call failed (upstream status 500)';
    assert.deepEqual([failed.code, failed.result], [1, { ok: false, errors: [{ message }] }]);
  });
});
