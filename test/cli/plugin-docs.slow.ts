/** What docs/plugins.md shows works as shown. */
import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { testEndpoint, testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import { parse } from 'yaml';
import type { EndpointKeys, SimplePlugin } from '../../plugins-sdk/define.ts';
import { describedAt } from '../openapi/document.ts';
import { commandsOf, filesOf, readPage, textsOf } from '../support/docs.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { folderWith, launch, PACKAGE_ROOT, runCli } from './run.ts';
import { configText } from './service-config.ts';

const page = await readPage('docs/plugins.md');
const files = filesOf(page);

function fileOf(name: string): string {
  return files.get(name) ?? assert.fail(`docs/plugins.md has no ${name}`);
}

/** A folder as of an operator who has installed the package, with files of the page. */
async function projectWith(t: TestContext, ...names: string[]): Promise<string> {
  const cwd = await folderWith(t, Object.fromEntries(names.map((name) => [name, fileOf(name)])));
  await mkdir(join(cwd, 'node_modules'));
  await symlink(PACKAGE_ROOT, join(cwd, 'node_modules/signed-data-proxy'));
  return cwd;
}

/** A plugin of the page in the harness. */
async function harnessFor(t: TestContext, name: string) {
  const cwd = await projectWith(t, name);
  await writeFile(join(cwd, 'package.json'), '{ "type": "module" }');
  const { default: plugin, keys }: { default: SimplePlugin; keys?: EndpointKeys } = await import(
    pathToFileURL(join(cwd, name)).href
  );
  return { harness: await testPlugin(plugin, { t, keys }) };
}

/** The command of a `sh` block that contains the text. */
function commandWith(text: string): string[] {
  const commands = textsOf(page, 'sh').flatMap(commandsOf);
  return commands.find((words) => words.join(' ').includes(text)) ?? assert.fail(`no command with ${text}`);
}

/** The arguments behind `npm run -s cli --`. */
function cliArguments(text: string): string[] {
  const [npm, run, silent, cli, dashes, ...args] = commandWith(text);
  assert.deepEqual([npm, run, silent, cli, dashes], ['npm', 'run', '-s', 'cli', '--']);
  return args;
}

describe('docs/plugins.md', { concurrency: 2 }, () => {
  it('has only files that are run here', () => {
    const known = [
      'config.yaml',
      'daily-limit-served.test.ts',
      'daily-limit.test.ts',
      'daily-limit.ts',
      'no-weekends.ts',
      'package.json',
    ];
    const state = ['coupons.ts', 'coupons.yaml', 'state-none.ts'];
    const others = ['in-cents.ts', 'price-band.ts', 'tenants.test.ts', 'tenants.ts', 'tenants.yaml'];
    const uses = ['again', 'bearer', 'elsewhere', 'last-good', 'mean', 'remembered', 'signed-calls'];
    const all = [...known, ...others, ...state, ...uses.map((name) => `${name}.ts`)];
    assert.deepEqual([...files.keys()].toSorted(), all.toSorted());
  });

  it('the first plugin', async (t) => {
    const cwd = await projectWith(t, 'config.yaml');
    const made = await runCli(t, cliArguments('plugin new'), { cwd });
    assert.deepEqual([made.code, made.stderr], [0, '']);
    const validated = await runCli(t, ['config', 'validate', '-c', 'config.yaml'], { cwd });
    assert.equal(validated.code, 0, validated.stderr);
  });

  it('a rule without a config', async (t) => {
    const { harness } = await harnessFor(t, 'no-weekends.ts');
    const isClosed = [0, 6].includes(new Date().getUTCDay());
    assert.equal('refused' in (await harness.run('onHttpRequest')), isClosed);
  });

  it('the memo of a request', async (t) => {
    const { harness } = await harnessFor(t, 'in-cents.ts');
    const request = harness.request({ headers: { 'x-unit': 'cents' } });
    await request.run('onHttpRequest');
    const data = { price: 10 };
    assert.deepEqual(await request.run('onAfterApiCall', { data }), { value: { data: { price: 1000 }, status: 200 } });
  });

  it('keys of endpoints', async (t) => {
    const { harness } = await harnessFor(t, 'price-band.ts');
    const outcome = (maxPrice: number) =>
      harness.run('onAfterApiCall', { endpoint: testEndpoint({ block: { maxPrice } }), data: { price: 10 } });
    assert.deepEqual(await outcome(10), { passed: true });
    assert.deepEqual(await outcome(9.5), { value: { data: { price: 10 }, status: 500 } });
  });

  for (const [file, count] of [
    ['daily-limit.test.ts', 2],
    ['daily-limit-served.test.ts', 1],
  ] as const)
    it(`the test of a plugin: ${file}`, async (t) => {
      const cwd = await projectWith(t, 'daily-limit.ts', file);
      const [node, ...args] = commandWith('--test daily-limit.test.ts');
      assert.equal(node, 'node');
      const words = args.map((word) => word.replace('daily-limit.test.ts', file));
      const { code, stdout } = await launch(t, process.execPath, ['--test-reporter=tap', ...words], { cwd }).ended;
      assert.equal(code, 0, stdout);
      assert.match(stdout, new RegExp(`^# tests ${count}\n# suites 0\n# pass ${count}$`, 'm'));
    });

  it('the test of a full plugin', async (t) => {
    const cwd = await projectWith(t, 'tenants.ts', 'tenants.test.ts');
    const args = [
      '--import',
      'signed-data-proxy/plugins-sdk/register',
      '--test-reporter=tap',
      '--test',
      'tenants.test.ts',
    ];
    const { code, stdout } = await launch(t, process.execPath, args, { cwd }).ended;
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^# tests 1\n# suites 0\n# pass 1$/m);
  });

  it('a plugin as a package', async (t) => {
    const { name, exports: main }: { name: string; exports: string } = JSON.parse(fileOf('package.json'));
    const cwd = await projectWith(t);
    const folder = join(cwd, 'node_modules', name);
    await mkdir(dirname(join(folder, main)), { recursive: true });
    await writeFile(join(folder, 'package.json'), fileOf('package.json'));
    await writeFile(join(folder, main), 'export default { name: "packed", hooks: { onHttpRequest() {} } };');
    await writeFile(join(cwd, 'c.yaml'), configText(undefined, `settings: { plugins: [{ source: "${name}" }] }`));
    const { code, stdout, stderr } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /packed/);
  });
});

describe('docs/plugins.md, a full plugin', async () => {
  const token = '0123456789abcdef';
  const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 1 }) });
  const files = { 'tenants.ts': fileOf('tenants.ts') };
  const env = { UPSTREAM: upstream.url, ADA_TOKEN: token };
  const service = await serviceFor(suite, parse(fileOf('tenants.yaml')), { files, env });

  it('checks credentials, counts signed answers and serves a route', async () => {
    const ask = (sent: string) => service.post('prices/eth-usd', {}, { 'X-Tenant-Token': sent });
    const refusal = async (response: Response) => [response.status, await response.json()];
    assert.deepEqual(await refusal(await ask('wrong')), [401, { error: 'Invalid tenant token' }]);
    for (let i = 0; i < 2; i++) {
      const { rawData } = await verifyRaw(await ask(token), service.signer.address);
      assert.deepEqual(rawData, { price: 1 });
    }
    assert.deepEqual(await refusal(await ask(token)), [429, { error: 'Quota used up' }]);
    const route = await fetch(`${service.url}/tenants`);
    assert.deepEqual([route.status, await route.json()], [200, { tenants: 1 }]);
    assert.ok(service.logs.some(({ message }) => message === 'tenants counts answers'));
  });

  it('describes itself', async () => {
    const described = await describedAt(service);
    const path = `/endpoints/${service.ids['prices/eth-usd']}`;
    assert.deepEqual(described.at('paths', path, 'post', 'security'), [{ tenant: [] }]);
    assert.equal(described.at('components', 'securitySchemes', 'tenant', 'name'), 'X-Tenant-Token');
    for (const sent of ['wrong', token]) {
      const response = await service.post('prices/eth-usd', {}, { 'X-Tenant-Token': sent });
      assert.equal(response.status, sent === token ? 429 : 401);
      await described.assertDescribed(path, 'post', response);
    }
    await described.assertDescribed('/tenants', 'get', await fetch(`${service.url}/tenants`));
  });

  it('has its check of the config run', async () => {
    const config = parse(fileOf('tenants.yaml'));
    config.apis[0].auth = { type: 'free' };
    await assert.rejects(startTestService(config, { files, env }), {
      message: 'apis[0].endpoints[0].tenantQuota: needs auth of type tenant',
    });
  });
});

it('docs/plugins.md, state that is shared', async (t) => {
  const upstream = await upstreamFor(t, { '/price': faults.json({ price: 1 }) });
  const coupon = '0123456789abcdef';
  const started = await serviceFor(t, parse(fileOf('coupons.yaml')), {
    files: { 'coupons.ts': fileOf('coupons.ts'), 'state-none.ts': fileOf('state-none.ts') },
    env: { UPSTREAM: upstream.url, COUPON: coupon },
  });
  assert.ok(started.logs.some(({ message }) => message === 'state is at nowhere'));
  const ask = (sent: string) => started.post('prices/eth-usd', {}, { 'X-Coupon': sent });
  const refusal = async (response: Response) => [response.status, await response.json()];
  assert.deepEqual(await refusal(await ask('wrong')), [401, { error: 'Invalid coupon' }]);
  const both = await Promise.all([ask(coupon), ask(coupon)]);
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 401]);
  assert.deepEqual(await refusal(await ask(coupon)), [401, { error: 'Coupon used' }]);
});
