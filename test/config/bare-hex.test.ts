/** A service takes a bare `0x…` as the text that stands in the file. `../cli/transcripts/hex.txt` has the commands. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { folderWith, launchCli, runCli } from '../cli/run.ts';
import { KEY } from '../cli/service-config.ts';
import { postTo, startIn, urlOf } from '../cli/started.ts';

const ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const ZERO = `0x${'0'.repeat(40)}`;

const config = (settings = '') => `version: '1.0'
server: { port: 0 }
${settings}
apis:
  - name: a
    url: http://127.0.0.1:9
    auth: { type: x402, network: 1, rpc: https://rpc.example, token: ${ZERO}, amount: '10', recipient: ${ADDRESS} }
    endpoints:
      - { name: e, path: /e }
`;

describe('a bare 0x… in a config', () => {
  it('is an address with all its digits, as what quotes make of it', async (t) => {
    const running = await startIn(t, { 'c.yaml': config() });
    const [, id] = await running.output(/a\/e (0x\w{64})/);
    const answer = await postTo(await urlOf(running), id);
    const { token, recipient }: { token: string; recipient: string } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, token, recipient], [402, ZERO, ADDRESS]);
  });

  it('is the name of the state file by which a command finds the service', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': config('settings: { state: { type: file, path: 0x1F } }') });
    await urlOf(launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } }));
    const id = `0x${'0'.repeat(64)}`;
    const { stderr } = await runCli(t, ['payments', id, '-c', 'c.yaml'], { cwd });
    assert.equal(stderr, `error: nothing is known of ${id}: look for it in the log\n`);
  });
});
