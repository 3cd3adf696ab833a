/** A bare `0x…` is the text that stands in the file where only a text may stand, and else a number. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launchCli, runCli } from '../cli/run.ts';
import { KEY } from '../cli/service-config.ts';
import { startIn, urlOf } from '../cli/started.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const ZERO = `0x${'0'.repeat(40)}`;

/** @param more of the endpoint. */
const config = (auth: string, more = '') => `version: '1.0'
server: { port: 0 }
apis:
  - name: a
    url: http://127.0.0.1:9
    auth: ${auth}
    endpoints:
      - name: e
        path: /e
        ${more}
`;

/** What `config validate` says of it, without the file's path. */
async function validate(t: TestContext, text: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const cwd = await folderWith(t, { 'c.yaml': text, ...files });
  const { stdout, stderr } = await runCli(t, ['config', 'validate', '-c', 'c.yaml', '--explain'], { cwd });
  return `${stdout}${stderr}`.replaceAll(`${cwd}/`, '');
}

describe('a bare 0x… in a config', () => {
  it('is an address with all its digits, as what quotes make of it', async (t) => {
    const paid = `{ type: x402, network: 1, rpc: https://rpc.example, token: ${ZERO}, amount: '10', recipient: ${ADDRESS} }`;
    const running = await startIn(t, { 'c.yaml': config(paid) });
    const [, id] = await running.output(/a\/e (0x\w{64})/);
    const answer = await fetch(`${await urlOf(running)}/endpoints/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"parameters":{}}',
    });
    const { token, recipient }: { token: string; recipient: string } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, token, recipient], [402, ZERO, ADDRESS]);
  });

  it('is a text in lists, in maps, behind an alias, and in what plugins take', async (t) => {
    const text = (write: (hex: string) => string) => `version: '1.0'
settings:
  fhe: { network: sepolia, rpcUrl: https://rpc.example, verifier: &v ${write(ADDRESS)} }
  plugins: [{ source: ./p.mjs, config: { to: *v } }]
apis:
  - name: a
    url: http://127.0.0.1:9
    headers: { X-Key: ${write('0x0A')} }
    auth: { type: apiKey, keys: [${write('0x1f')}, ${write(ADDRESS)}, { name: n, key: ${write('0x00')} }] }
    endpoints:
      - name: e
        path: /e
        encoding: { type: uint256, path: $.p, exact: true }
        encrypt: { type: euint64, contract: ${write(ADDRESS)} }
`;
    const plugin = `export const configSchema = { type: 'object', properties: { to: { type: 'string' } } };
      export default ({ to }) => { if (to !== '${ADDRESS}') throw new Error(to); return { name: 'p', hooks: { onError() {} } }; };`;
    const bare = await validate(t, text(String), { 'p.mjs': plugin });
    assert.match(bare, new RegExp(`"contract":"${ADDRESS.toLowerCase()}"`));
    const quote = (hex: string) => `'${hex}'`;
    assert.equal(bare, await validate(t, text(quote), { 'p.mjs': plugin }));
  });

  it('is a number where a number may stand, and a text where that would lose digits', async (t) => {
    const free = '{ type: free }';
    const explained = await validate(
      t,
      config(free, 'parameters: [{ name: q, fixed: 0x1F }]').replace('port: 0', 'port: 0x1F90'),
    );
    assert.match(explained, /"fixed":31,/);
    const address = await validate(t, config(free, `parameters: [{ name: q, fixed: ${ADDRESS} }]`));
    assert.match(address, new RegExp(`"fixed":"${ADDRESS}",`));
    const [first] = (await validate(t, config(free).replace('port: 0', `port: 0x${'f'.repeat(400)}`))).split('\n');
    assert.equal(first, 'error: server.port: expected an integer, found a string (line 2)');
    const unknown = (await validate(t, config(free, `contract: ${ADDRESS}`))).split('\n');
    assert.equal(unknown.length, 2);
    assert.match(
      unknown[0] ?? '',
      /^error: apis\[0\]\.endpoints\[0\]\.contract: unknown key here, .* \(a\/e, line 10\)$/,
    );
  });

  it('is the same text to commands that read the file by other ways', async (t) => {
    const upstream = await upstreamFor(t, { '/e': faults.json({ price: 1 }) });
    const text = (name: string) =>
      config('{ type: free }', `description: ${name}`)
        .replace('http://127.0.0.1:9', upstream.url)
        .replace('name: a', `name: ${name}`)
        .replace('name: e', `name: ${name}`);
    const cwd = await folderWith(t, { 'bare.yaml': text('0x1F'), 'quoted.yaml': text("'0x1F'") });
    const said = async (...args: string[]) => {
      const [bare, quoted] = await Promise.all(
        ['bare.yaml', 'quoted.yaml'].map((file) => runCli(t, [...args, '-c', file], { cwd })),
      );
      assert.deepEqual({ ...bare, stderr: bare?.stderr.replaceAll('bare.', 'quoted.') }, quoted);
      return quoted;
    };
    const tried = await said('try', '0x1F/0x1F');
    assert.deepEqual([tried?.code, upstream.requests.map(({ path }) => path)], [0, ['/e', '/e']]);
  });

  it('is the name of the state file by which a command finds the service', async (t) => {
    const paid = `{ type: x402, network: 1, rpc: https://rpc.example, token: ${ZERO}, amount: '10', recipient: ${ADDRESS} }`;
    const text = config(paid).replace('apis:', 'settings: { state: { type: file, path: 0x1F } }\napis:');
    const cwd = await folderWith(t, { 'c.yaml': text });
    await urlOf(launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }));
    const id = `0x${'0'.repeat(64)}`;
    const { stderr } = await runCli(t, ['payments', id, '-c', 'c.yaml'], { cwd });
    assert.equal(stderr, `error: nothing is known of ${id}: look for it in the log\n`);
  });

  it('is the same text in a document that is imported, as are numbers among choices that are texts', async (t) => {
    const openapi = (one: string, other: string) => `openapi: 3.0.3
info: { title: T, version: '1' }
servers: [{ url: https://api.example }]
paths:
  /p:
    get:
      operationId: getP
      parameters:
        - { name: a, in: query, required: true, schema: { type: string, enum: [${one}] } }
        - { name: v, in: query, schema: { type: string, enum: [${other}, ${one}] } }
        - { name: n, in: query, schema: { type: integer, enum: [0x1F], maximum: 0xFF } }
      responses: { 200: { description: ok, content: { application/json: {} } } }
`;
    const cwd = await folderWith(t, {
      'bare.yaml': openapi(ADDRESS, '1.10'),
      'quoted.yaml': openapi(`'${ADDRESS}'`, "'1.10'"),
    });
    const [bare, quoted] = await Promise.all(
      ['bare.yaml', 'quoted.yaml'].map((file) => runCli(t, ['import', file], { cwd })),
    );
    const neutral = (text = '') => text.replaceAll('bare.', 'quoted.');
    assert.equal(neutral(bare?.stdout), quoted?.stdout);
    assert.equal(neutral(bare?.stderr), quoted?.stderr);
    assert.match(quoted?.stdout ?? '', new RegExp(`fixed: ["']${ADDRESS}["']`));
    assert.match(quoted?.stdout ?? '', /enum: \[ ?31 ?\], maximum: 255/);
  });
});
