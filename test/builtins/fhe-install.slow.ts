/** A service that lacks the FHE package says how to install it, and starts where no config needs it. */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launch, PACKAGE_ROOT } from '../cli/run.ts';
import { TEST_KEY } from '../support/service.ts';

const SCOPE = '@zama-fhe';
const INSTALL = 'npm install @zama-fhe/relayer-sdk@0.4.3';

const config = `
version: '1.0'
server: {port: 0}
settings:
  fhe: {network: sepolia, rpcUrl: http://127.0.0.1:9, verifier: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'}
apis:
  - name: api
    url: http://127.0.0.1:9
    auth: {type: free}
    endpoints: [{name: endpoint, path: /}]
`;

/** Folders that no service needs. */
const LEFT_OUT = new Set(['node_modules', 'coverage', 'test', 'dist', 'tools', 'docs']);

describe('a service whose config has `settings.fhe`', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sdp-without-sdk-'));
    for (const name of await readdir(PACKAGE_ROOT)) {
      if (name.startsWith('.') || LEFT_OUT.has(name)) continue;
      await cp(join(PACKAGE_ROOT, name), join(folder, name), { recursive: true });
    }
    const modules = join(folder, 'node_modules');
    await mkdir(modules);
    for (const name of await readdir(join(PACKAGE_ROOT, 'node_modules'))) {
      if (name !== SCOPE) await symlink(join(PACKAGE_ROOT, 'node_modules', name), join(modules, name));
    }
    await writeFile(join(folder, 'fhe.yaml'), config);
    await writeFile(join(folder, 'plain.yaml'), config.replace(/settings:\n.*\n/, ''));
  });
  after(() => rm(folder, { recursive: true }));

  const run = (t: Parameters<typeof launch>[0], file: string, command = ['start']) =>
    launch(t, process.execPath, [join(folder, 'cli/bin.js'), ...command, '-c', join(folder, file)], {
      cwd: folder,
      env: { SERVICE_PRIVATE_KEY: TEST_KEY },
    });

  it('does not start without the SDK, and tells how to install it', async (t) => {
    const { code, stderr } = await run(t, 'fhe.yaml').ended;
    assert.match(
      stderr,
      new RegExp(`plugin "fhe" cannot start: settings\\.fhe needs a package that is not installed: ${INSTALL}\n$`),
    );
    assert.equal(code, 1);
  });

  it('does not start with another version of it either', async (t) => {
    const installed = join(folder, 'node_modules', SCOPE, 'relayer-sdk');
    await mkdir(installed, { recursive: true });
    await writeFile(join(installed, 'package.json'), '{"name": "@zama-fhe/relayer-sdk", "version": "0.2.0"}');
    const { code, stderr } = await run(t, 'fhe.yaml').ended;
    assert.match(
      stderr,
      new RegExp(`cannot start: settings\\.fhe needs @zama-fhe/relayer-sdk 0\\.4\\.3, not 0\\.2\\.0: ${INSTALL}\n$`),
    );
    assert.equal(code, 1);
    await rm(join(folder, 'node_modules', SCOPE), { recursive: true });
  });

  it('can be validated without it, and one without `settings.fhe` starts', async (t) => {
    assert.equal((await run(t, 'fhe.yaml', ['config', 'validate']).ended).code, 0);
    const service = run(t, 'plain.yaml');
    await service.output(/listening on /);
    assert.equal((await service.stop()).code, 0);
  });
});
