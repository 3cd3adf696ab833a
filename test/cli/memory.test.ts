/** A service knows how much memory it may use, and warns where that is too little. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MIB, startInGroup, V2, type Version, withoutNamespaces } from '../support/cgroup.ts';
import { lastLine, onSignal, startIn } from './started.ts';

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

describe('the memory that a service may use', { skip: withoutNamespaces }, () => {
  for (const [name, version] of Object.entries(versions)) {
    it(`is that of ${name}: a warning says that it is nearly used up, and a line that it no longer is`, async (t) => {
      const { use, measured, said } = await startInGroup(t, version);
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
