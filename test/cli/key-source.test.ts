/** The signing key comes from one place, and a doubtful one is refused. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { folderWith, launchCli } from './run.ts';
import { ADDRESS, MNEMONIC } from './service-config.ts';
import { withPlugin } from './started.ts';

describe('where the key comes from', { concurrency: 3 }, () => {
  const skip = existsSync('/proc/self/environ') ? false : 'there is no /proc';
  it('leaves a key that was a variable readable in /proc, one of a file nowhere, and none in process.env', {
    skip,
  }, async (t) => {
    const spy = `import { readFileSync } from 'node:fs';
      console.log('seen', /SERVICE_(?:PRIVATE_KEY|MNEMONIC)|\\btest junk/.test(readFileSync('/proc/self/environ', 'utf8')));
      console.log('left', process.env.SERVICE_PRIVATE_KEY, process.env.SERVICE_MNEMONIC);
      export default { name: 'spy', hooks: { onResponseSent() {} } };`;
    const cwd = await folderWith(t, { ...withPlugin(spy), 'signer.env': `SERVICE_MNEMONIC="${MNEMONIC}"\n` });
    for (const [words, env, seen] of [
      [['--env', 'signer.env'], {}, false],
      [[], { SERVICE_MNEMONIC: MNEMONIC }, true],
    ] as const) {
      const running = launchCli(t, ['start', ...words, '-c', 'c.yaml'], { cwd, env });
      assert.equal((await running.output(/seen (\w+)\n/))[1], String(seen));
      await running.output(/left undefined undefined\n/);
      assert.equal(readFileSync(`/proc/${running.child.pid}/environ`, 'utf8').includes(MNEMONIC), seen);
      await running.output(new RegExp(`signer ${ADDRESS}`));
    }
  });
});
