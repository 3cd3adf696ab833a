/** A bare `0x…` is the text that stands in the file where only a text may stand, and else a number. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, runCli } from '../cli/run.ts';
import { startIn, urlOf } from '../cli/started.ts';

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

  it('is a number where a number may stand, and an error where that loses digits', async (t) => {
    const free = '{ type: free }';
    const explained = await validate(
      t,
      config(free, 'parameters: [{ name: q, fixed: 0x1F }]').replace('port: 0', 'port: 0x1F90'),
    );
    assert.match(explained, /"fixed":31,/);
    assert.equal(
      await validate(t, config(free, `parameters: [{ name: q, fixed: ${ADDRESS} }]`)),
      'error: apis[0].endpoints[0].parameters[0].fixed: a number with more digits than can be kept, write it in quotes (a/e, line 10)\n',
    );
    const [first] = (await validate(t, config(free).replace('port: 0', `port: 0x${'f'.repeat(400)}`))).split('\n');
    assert.equal(first, 'error: server.port: expected an integer, found a number (line 2)');
    const unknown = (await validate(t, config(free, `contract: ${ADDRESS}`))).split('\n');
    assert.equal(unknown.length, 2);
    assert.match(unknown[0] ?? '', /^error: apis\[0\]\.endpoints\[0\]\.contract: unknown key, .* \(a\/e, line 10\)$/);
  });
});
