import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { Scrape } from '../support/metrics.ts';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine, onSignal, startIn } from './started.ts';

const MIB = 2 ** 20;
/** Has a program see other files about its cgroup than there are: `$1` holds the group's name and its files. */
const SCRIPT = 'mount --bind "$1/cgroup" /proc/$$/cgroup && mount --bind "$1/fs" /sys/fs/cgroup && shift && exec "$@"';
const namespaces = spawnSync('unshare', ['-rm', 'mount', '--bind', '/tmp', '/sys/fs/cgroup']).status === 0;
const withoutNamespaces = namespaces ? false : 'mount namespaces cannot be made here';

/** What the kernel says by one version of cgroup: of which group, and in which files. */
interface Version {
  readonly cgroup: string;
  readonly folder: string;
  readonly limit: string;
  readonly used: string;
  readonly cache: string;
}

const V2 = { limit: 'memory.max', used: 'memory.current', cache: 'inactive_file' };
const V1 = { limit: 'memory.limit_in_bytes', used: 'memory.usage_in_bytes', cache: 'total_inactive_file' };
const HOSTS_V1 = '12:cpu:/\n4:memory:/docker/abc\n';
const versions: Readonly<Record<string, Version>> = {
  'cgroup v2, in a container': { ...V2, cgroup: '0::/\n', folder: '.' },
  'cgroup v2, in a unit of systemd': {
    ...V2,
    cgroup: '0::/system.slice/s.service\n',
    folder: 'system.slice/s.service',
  },
  'cgroup v1, on the host': { ...V1, cgroup: HOSTS_V1, folder: 'memory/docker/abc' },
  'cgroup v1, in a container': { ...V1, cgroup: HOSTS_V1, folder: 'memory' },
};

async function start(t: TestContext, { cgroup, folder, limit, used, cache }: Version) {
  const config = configText(undefined, 'settings: { metrics: { port: 0 } }');
  const cwd = await folderWith(t, { 'c.yaml': config, cgroup });
  const files = join(cwd, 'fs', folder);
  await mkdir(files, { recursive: true });
  /** @param mebibytes of which a hundred are files that the kernel could drop. */
  const use = async (mebibytes: number) => {
    await writeFile(join(files, 'memory.stat'), `anon 1\n${cache} ${100 * MIB}\nactive_file 2\n`);
    await writeFile(join(files, used), `${mebibytes * MIB}\n`);
  };
  await use(400);
  await writeFile(join(files, limit), `${500 * MIB}\n`);
  // A second limit that every group has, and here without effect.
  const isV2 = limit === V2.limit;
  await writeFile(
    join(files, isV2 ? 'memory.high' : 'memory.soft_limit_in_bytes'),
    isV2 ? 'max\n' : '9223372036854771712\n',
  );
  const program = [process.execPath, `${PACKAGE_ROOT}/cli/bin.js`, 'start', '-c', 'c.yaml'];
  const env = { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json' };
  const { output } = launch(t, 'unshare', ['-rm', 'sh', '-c', SCRIPT, 'sh', cwd, ...program], { cwd, env });
  const [, url = ''] = await output(/metrics on (\S+\/metrics)/);
  const measured = async () => {
    const found = new Scrape(await (await fetch(url)).text());
    return [found.value('memory_used_bytes'), found.value('memory_limit_bytes')];
  };
  const said = async (text: string) => (await output(new RegExp(`^.*"msg":"${text}`, 'm')))[0];
  return { use, measured, said };
}

describe('the memory that a service may use', { skip: withoutNamespaces }, () => {
  for (const [name, version] of Object.entries(versions)) {
    it(`is that of ${name}: a warning says that it is nearly used up, and a line that it no longer is`, async (t) => {
      const { use, measured, said } = await start(t, version);
      assert.deepEqual(await measured(), [300 * MIB, 500 * MIB]);
      await use(551);
      const near = await said('memory is nearly used up: the system ends a process when it is');
      assert.match(near, /^\{"level":"warn",.*"usedMiB":451,"limitMiB":500,/);
      assert.deepEqual(await measured(), [451 * MIB, 500 * MIB]);
      await use(499);
      const over = await said('memory is no longer nearly used up');
      assert.match(over, /^\{"level":"info",.*"usedMiB":399,"limitMiB":500,/);
    });
  }
});

it('a heap that is full ends the process by SIGABRT: what V8 says of it goes to stderr, and the log stays JSON', async (t) => {
  const leak = onSignal('  const kept = [];\n  for (;;) kept.push({ n: kept.length });');
  const env = { LOG_FORMAT: 'json', NODE_OPTIONS: '--max-old-space-size=64', NODE_V8_COVERAGE: '' };
  const { child, output, ended } = await startIn(t, leak, env);
  await output(new RegExp(lastLine.source.replace('\\n', '"')));
  child.kill('SIGUSR2');
  const { signal, stdout, stderr } = await ended;
  assert.equal(signal, 'SIGABRT');
  const levels = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).level);
  assert.ok(levels.length > 3 && levels.every((level) => /^(info|warn)$/.test(level)), stdout);
  assert.match(stderr, /^<--- Last few GCs --->$/m);
  assert.match(stderr, /^FATAL ERROR: .* JavaScript heap out of memory$/m);
});
