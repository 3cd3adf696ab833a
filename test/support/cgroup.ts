import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT } from '../cli/run.ts';
import { configText, KEY } from '../cli/service-config.ts';
import { Scrape } from './metrics.ts';

export const MIB = 2 ** 20;
/** Has a program see other files about its cgroup than there are: `$1` holds the group's name and its files. */
const SCRIPT = 'mount --bind "$1/cgroup" /proc/$$/cgroup && mount --bind "$1/fs" /sys/fs/cgroup && shift && exec "$@"';
const namespaces = spawnSync('unshare', ['-rm', 'mount', '--bind', '/tmp', '/sys/fs/cgroup']).status === 0;
export const withoutNamespaces = namespaces ? false : 'mount namespaces cannot be made here';

/** What the kernel says by one version of cgroup: of which group, and in which files. */
export interface Version {
  readonly cgroup: string;
  readonly folder: string;
  readonly limit: string;
  readonly used: string;
  readonly cache: string;
}

export const V2 = { limit: 'memory.max', used: 'memory.current', cache: 'inactive_file' };

/** A service that sees these files about its memory, of which it may use 500 MiB. */
export async function startInGroup(t: TestContext, { cgroup, folder, limit, used, cache }: Version) {
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
  const { child, output } = launch(t, 'unshare', ['-rm', 'sh', '-c', SCRIPT, 'sh', cwd, ...program], { cwd, env });
  const [, url = ''] = await output(/metrics on (\S+\/metrics)/);
  const measured = async () => {
    const found = new Scrape(await (await fetch(url)).text());
    return [found.value('memory_used_bytes'), found.value('memory_limit_bytes')];
  };
  const said = async (text: string) => (await output(new RegExp(`^.*"msg":"${text}`, 'm')))[0];
  let log = '';
  child.stdout?.on('data', (text: string) => (log += text));
  const scrape = async () => new Scrape(await (await fetch(url)).text());
  return { use, measured, said, scrape, log: () => log };
}
