/** The stages of the Dockerfile make a service that answers. */
import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { it, type TestContext } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT } from '../cli/run.ts';
import { ADDRESS, configText, endpointId, KEY, specifications } from '../cli/service-config.ts';
import * as dockerfile from '../support/dockerfile.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

/** A stage as a folder that stands for the root of its file system. */
interface Stage {
  readonly name: string;
  readonly root: string;
  readonly instructions: readonly dockerfile.Instruction[];
}

/** npm has no copy of a package, and tests do not ask for it. */
class NotCached extends Error {}

function copy({ root }: Stage, folder: string, rest: string, stages: readonly Stage[]): void {
  const { stage, sources, target } = dockerfile.copyOf(rest);
  const from =
    stage === undefined ? PACKAGE_ROOT : (stages.find(({ name }) => name === stage)?.root ?? assert.fail(rest));
  const filter = (path: string) => stage !== undefined || !dockerfile.isIgnored(relative(PACKAGE_ROOT, path));
  for (const source of sources) {
    const path = join(from, source);
    const isInto = target.endsWith('/') && sources.length > 1;
    cpSync(path, join(root, folder, target, isInto ? basename(source) : ''), { recursive: true, filter });
  }
}

async function run(t: TestContext, cwd: string, script: string): Promise<void> {
  const env = { npm_config_offline: 'true', npm_config_update_notifier: 'false' };
  const { code, stdout, stderr } = await launch(t, 'bash', ['-eu', '-c', script], { cwd, env }).ended;
  if (/ENOTCACHED/.test(stderr)) throw new NotCached();
  assert.equal(code, 0, `${script}\n${stdout}${stderr}`);
}

/** Does what an engine does with a stage. What `npm ci` of all packages makes is there already, from the same lock file. */
async function build(t: TestContext, stage: Stage, stages: readonly Stage[]): Promise<void> {
  let folder = '/';
  for (const { name, rest } of stage.instructions) {
    if (name === 'WORKDIR') {
      folder = rest;
      mkdirSync(join(stage.root, folder), { recursive: true });
    } else if (name === 'COPY') copy(stage, folder, rest, stages);
    else if (name === 'RUN' && /^npm ci (?!.*--omit=dev)/.test(rest))
      symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(stage.root, folder, 'node_modules'));
    else if (name === 'RUN') await run(t, join(stage.root, folder), rest);
  }
}

/** As user 1000 without capabilities, where the test may do that. */
const unprivileged =
  process.getuid?.() === 0
    ? [
        'setpriv',
        '--reuid=1000',
        '--regid=1000',
        '--clear-groups',
        '--inh-caps=-all',
        '--bounding-set=-all',
        '--no-new-privs',
      ]
    : ['env'];

it('the stages of the Dockerfile, run one after the other, make a service that answers', async (t) => {
  const root = await folderWith(t);
  chmodSync(root, 0o755);
  const starts = dockerfile.instructions.flatMap(({ name }, i) => (name === 'FROM' ? [i] : []));
  const stages = starts.map((start, i): Stage => {
    const [from, ...instructions] = dockerfile.instructions.slice(start, starts[i + 1]);
    const name = / AS (\w+)$/.exec(from?.rest ?? '')?.[1] ?? 'last';
    return { name, root: join(root, name), instructions };
  });
  try {
    await Promise.all(stages.slice(0, -1).map((stage) => build(t, stage, [])));
    for (const stage of stages.slice(-1)) await build(t, stage, stages);
  } catch (error) {
    if (error instanceof NotCached) return t.skip('npm keeps no copies of the packages');
    throw error;
  }
  const app = join(root, 'last/app');
  assert.ok(existsSync(join(app, 'node_modules/ioredis/package.json')));
  for (const absent of ['node_modules/typescript', 'node_modules/@biomejs', 'test', 'cli/bin.ts'])
    assert.ok(!existsSync(join(app, absent)), absent);

  const upstream = await upstreamFor(t);
  upstream.json('/eth', { price: 7 });
  const config = await folderWith(t, { 'config.yaml': configText(upstream.url) });
  chmodSync(config, 0o755);
  const words = [...unprivileged, ...dockerfile.entryPoint, ...dockerfile.command];
  const [program = '', ...args] = words.map((word) => word.replace(/^\/config\//, `${config}/`));
  const running = launch(t, program, args, { cwd: app, env: { ...dockerfile.variables, SERVICE_PRIVATE_KEY: KEY } });
  const [, url = ''] = await running.output(/"msg":"listening on (http:[^"]+)"/);
  const [check = '', ...checkArgs] = dockerfile.healthCheck;
  const { code } = await launch(t, check, checkArgs, { cwd: app, env: { HEALTH_URL: `${url}/health` } }).ended;
  assert.equal(code, 0);
  const id = endpointId(specifications(upstream.url).eth);
  const headers = { 'content-type': 'application/json' };
  const { data } = await verifyEncoded(
    await fetch(`${url}/endpoints/${id}`, { method: 'POST', headers, body: '{}' }),
    ADDRESS,
  );
  assert.equal(BigInt(data), 7n * 10n ** 18n);
  assert.equal((await running.stop()).code, 0);
});
