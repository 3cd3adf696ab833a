import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Asks for a name without file descriptors, for another one with them, and waits until the resolver's process has ended. */
const PROGRAM = `
import childProcess from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const started = [];
const { spawn } = childProcess;
childProcess.spawn = (...args) => {
  const child = spawn(...args);
  started.push(child);
  const { kill } = child;
  child.kill = (signal) => {
    if (child.pid === undefined) console.log('kills a stranger');
    return kill.call(child, signal);
  };
  return child;
};
syncBuiltinESMExports();
const { SystemResolver } = await import('./plugins-sdk/lib/http/host-names/system.ts');
const resolver = new SystemResolver(100);
const find = (host) => resolver.find(host).then((addresses) => addresses.length, () => 'nobody to ask');
const descriptors = [];
try {
  for (;;) descriptors.push(openSync('/dev/null', 'r'));
} catch {}
const asked = find('one.invalid');
for (const descriptor of descriptors) closeSync(descriptor);
console.log(await asked, await find('127.1'));
const last = started.at(-1);
const late = AbortSignal.timeout(15_000);
while (last.signalCode === null && !late.aborted) await sleep(10);
console.log(last.signalCode);
process.exit();
`;

it('the process of the system resolver ends when it is idle, also after one that could not be started', async (t) => {
  if (process.platform === 'win32') return t.skip('has no limit of file descriptors');
  const command = `ulimit -n 256; exec "${process.execPath}" --import tsx --input-type=module -e "$PROGRAM"`;
  const env = { ...process.env, PROGRAM };
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: root, env });
  assert.equal(stdout, 'nobody to ask 1\nSIGKILL\n');
});
