/** `verify --parameters` checks receipts, and `config validate` recommends them. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { keccak256, solidityPackedKeccak256, toUtf8Bytes, Wallet } from 'ethers';
import { stringify } from 'yaml';
import { type Asked, answerBy, requestHash } from '../support/receipts.ts';
import { type Ended, folderWith, runCli } from './run.ts';

const wallet = new Wallet(`0x${'11'.repeat(32)}`);
const endpointId = keccak256(toUtf8Bytes('an endpoint'));
const parameters = { symbol: 'ETHUSD', ids: [1, 'ü'] };
const unsigned = { endpointId, timestamp: 1_767_225_600, content: { data: '0x1234' }, parameters };
const text = JSON.stringify(await answerBy(wallet, unsigned));

/** Runs `verify` on a file with that text, the signer pinned; error texts name the file. */
async function verify(t: TestContext, answer: string, ...options: string[]): Promise<Ended> {
  const cwd = await folderWith(t, { 'a.json': answer });
  const ended = await runCli(t, ['verify', 'a.json', '--node', wallet.address, ...options], { cwd });
  return { ...ended, stderr: ended.stderr.replace(`${cwd}/a.json`, 'FILE') };
}

const refused = (message: string): Ended => ({ code: 1, signal: null, stdout: '', stderr: `error: ${message}\n` });

describe('verify --parameters', () => {
  const digest = solidityPackedKeccak256(['bytes32', 'uint256', 'bytes'], [endpointId, unsigned.timestamp, '0x1234']);
  const lines = [
    `Signer: ${wallet.address}`,
    'Pinned: yes',
    `Digest: ${digest}`,
    `Endpoint ID: ${endpointId}`,
    'Timestamp: 2026-01-01T00:00:00.000Z (1767225600)',
    'Signed data: 0x1234',
  ];
  const accepted = (...more: string[]): Ended => {
    const stdout = [...lines, ...more].map((line) => `${line}\n`).join('');
    return { code: 0, signal: null, stdout, stderr: '' };
  };
  const checked = accepted(`Request hash: ${requestHash(parameters)} (the receipt is of these parameters)`);

  it('says that the receipt is of them, in whatever form they are written', async (t) => {
    assert.deepEqual(await verify(t, text, '--parameters', JSON.stringify(parameters)), checked);
    const other = ' { "ids" : [1.0, "\\u00fc"],\n "symbol":"ETHUSD" }';
    assert.deepEqual(await verify(t, text, `--parameters=${other}`), checked);
  });

  it('does not look at a receipt without them', async (t) => {
    assert.deepEqual(await verify(t, text), accepted());
  });

  it('refuses the answer to others, and one without a receipt', async (t) => {
    const doge: Asked = { symbol: 'DOGEUSD' };
    const count = 'the defaults of parameters that were left out count, too: write them, or give the config with -c';
    const message = `the response is of the request ${requestHash(parameters)}, not of ${requestHash(doge)}; ${count}`;
    assert.deepEqual(await verify(t, text, '--parameters', JSON.stringify(doge)), refused(`FILE: ${message}`));
    const bare = JSON.stringify({ ...JSON.parse(text), receipt: undefined });
    assert.deepEqual(
      await verify(t, bare, '--parameters', '{}'),
      refused('FILE: the response has no receipt that tells what was asked'),
    );
  });

  const object = 'option --parameters <json> must be a JSON object, such as {"symbol":"ETHUSD"}';
  const rounded = 'option --parameters <json> holds a number that would be rounded: it is asked as a string';
  for (const [what, value, message] of [
    ['no JSON', 'symbol=ETHUSD', object],
    ['half of it', '{"symbol":', object],
    ['a list', '["ETHUSD"]', object],
    ['null', 'null', object],
    ['a number that looks like one', '1e3', object],
    ['a lone surrogate', '{"symbol":"\\ud800"}', object],
    ['a number beyond 2^53', '{"id":9007199254740993}', rounded],
    ['a number beyond all', '{"id":1e999}', rounded],
    ['nothing', '', 'option --parameters <json> needs a value'],
  ] as const) {
    it(`refuses ${what}`, async (t) => {
      assert.deepEqual(await verify(t, text, '--parameters', value), refused(message));
    });
  }
});

describe('verify --parameters -c', () => {
  const declared = [
    { name: 'symbol', required: true },
    { name: 'vs', default: 'usd' },
    { name: 'limit', default: 1.5 },
    { name: 'deep', in: 'body' },
    { name: 'app', fixed: 'x' },
    { name: 'key', secret: true, default: 'geheim' },
  ];
  const endpoints = [
    { name: 'e', path: '/e', method: 'POST', parameters: declared, encoding: { type: 'int256', path: '*' } },
  ];
  const config = (more: object = {}) =>
    stringify({
      version: '1.0',
      apis: [{ name: 'a', url: 'https://api.example', auth: { type: 'free' }, receipt: true, endpoints, ...more }],
    });

  /** The last line of stdout, or what is said on stderr, for an answer to `asked`. */
  async function checked(t: TestContext, asked: Asked, sent: object, text = config()): Promise<string> {
    const cwd = await folderWith(t, { 'c.yaml': config(), 'd.yaml': text });
    const { stdout: ids } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    const [, id = ''] = /(0x\w{64})/.exec(ids) ?? [];
    const value = { endpointId: id, timestamp: 1_767_225_600, content: { data: `0x${'00'.repeat(32)}` } };
    const answer = JSON.stringify(await answerBy(wallet, { ...value, parameters: asked }));
    await writeFile(join(cwd, 'a.json'), answer);
    const words = ['verify', 'a.json', '--parameters', JSON.stringify(sent), '-c', 'd.yaml', '--type', 'int256'];
    const { stdout, stderr } = await runCli(t, words, { cwd });
    return stderr.replaceAll(`${cwd}/`, '') || (stdout.split('\n').find((line) => line.startsWith('Request')) ?? '');
  }

  const asked = { symbol: 'ETH', vs: 'usd', limit: 1.5, _path: '$.p' };

  it('fills in the defaults, and leaves out what receipts do not cover', async (t) => {
    const hash = `Request hash: ${requestHash(asked)} (the receipt is of these parameters`;
    const path = { _path: '$.p' };
    assert.equal(await checked(t, asked, { symbol: 'ETH', ...path }), `${hash} and the defaults of vs, limit)`);
    const all = { ...asked, app: 'y', key: 'z' };
    assert.equal(await checked(t, asked, all), `${hash})`);
    assert.equal(await checked(t, asked, { ...all, vs: null, limit: 1.5 }), `${hash} and the defaults of vs)`);
    const empty = { ...asked, deep: null, _path: null };
    const { _path: _, ...sent } = empty;
    assert.equal(
      await checked(t, empty, sent),
      `Request hash: ${requestHash(empty)} (the receipt is of these parameters)`,
    );
  });

  it('refuses other parameters, and names the one that the endpoint does not have', async (t) => {
    const eur = { ...asked, vs: 'eur' };
    const other = `the response is of the request ${requestHash(asked)}, not of ${requestHash(eur)}`;
    assert.equal(await checked(t, asked, eur), `error: a.json: ${other}\n`);
    const unknown = 'error: option --parameters <json>: a/e has no parameter "symbl"\n';
    assert.equal(await checked(t, asked, { symbl: 'ETH' }), unknown);
    const { _path: _, ...sent } = eur;
    const elsewhere = `the response is of the request ${requestHash(asked)}, not of ${requestHash(sent)}`;
    const count = 'the defaults of parameters that were left out count, too, and d.yaml does not have the endpoint';
    const moved = config({ url: 'https://other.example' });
    assert.equal(await checked(t, asked, sent, moved), `error: a.json: ${elsewhere}; ${count}\n`);
  });
});

describe('config validate: the recommendation of receipts', () => {
  const validate = async (t: TestContext, endpoints: Readonly<Record<string, object>>, api = {}, more = {}) => {
    const list = Object.entries(endpoints).map(([name, endpoint]) => ({ name, path: `/${name}`, ...endpoint }));
    const apis = [{ name: 'api', url: 'https://api.example.com', auth: { type: 'free' }, ...api, endpoints: list }];
    const cwd = await folderWith(t, { 'c.yaml': stringify({ version: '1.0', ...more, apis }) });
    const { code, stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stdout.split('\n').map((line) => line.split(' ')[0]),
      [...Object.keys(endpoints).map((name) => `api/${name}`), ''],
    );
    return stderr;
  };
  const encoding = { type: 'int256', path: '$', exact: true };
  const recommendation = (names: string) =>
    `recommendation: receipt: true for ${names}: the parameters of clients are not in the signature, so that an answer to ` +
    'one request passes as one to another; a receipt tells them apart (receipt: false: not wanted)\n';
  const asking = { encoding, parameters: [{ name: 'q' }] };

  it('is one line for all endpoints whose clients choose', async (t) => {
    const wildcard = { encoding: { type: 'int256', path: '*', exact: true } };
    assert.equal(
      await validate(t, { one: asking, none: { encoding }, chosen: wildcard }),
      recommendation('api/one, api/chosen'),
    );
    const many = { a: asking, b: asking, c: asking, d: asking, e: asking };
    assert.equal(await validate(t, many), recommendation('api/a, api/b, api/c and 2 more'));
  });

  it('is not given where nobody chooses or somebody has decided', async (t) => {
    const pinned = {
      encoding,
      parameters: [
        { name: 'q', fixed: 'x' },
        { name: 'key', secret: true, default: 'y' },
      ],
    };
    assert.equal(await validate(t, { pinned, none: { encoding } }), '');
    assert.equal(await validate(t, { yes: { ...asking, receipt: true }, no: { ...asking, receipt: false } }), '');
    assert.equal(await validate(t, { yes: asking }, { receipt: true }), '');
  });

  it('is not given where the plugin is left out', async (t) => {
    const settings = { plugins: [{ source: 'builtin:receipt', enabled: false }] };
    assert.equal(await validate(t, { one: asking }, {}, { settings }), '');
  });
});
