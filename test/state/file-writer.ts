import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { FileState } from '../../builtins/state-file/file-state.ts';
import { contentOf, KEYS_EACH } from './file-setup.ts';

/**
 * Changes a state file as fast as it can until it is killed, and says each change that was acknowledged: key and number.
 * Arguments: the file, what values begin with.
 */
const [path = '', round = ''] = process.argv.slice(2);
const WRITERS = 8;

function say(line: string): void {
  for (;;) {
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      // A test that is slow to listen holds this up.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
    }
  }
}

const log = { debug() {}, info() {}, warn: say, error: say };
const engine = new FileState(path, { log, now: Date.now, path: (relative) => relative });

async function write(writer: number): Promise<void> {
  const area = engine.area('a');
  for (let count = 0; ; ) {
    const key = `${writer}.${count % KEYS_EACH}`;
    try {
      await area.compareAndSet(key, await area.get(key), contentOf(round, count), { durable: true });
      say(`ack ${key} ${count}`);
      count++;
    } catch (error) {
      say(`refused ${error instanceof Error ? error.message : error}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

try {
  await engine.start();
  // One that outlives this process, and must not keep the lock.
  const { pid } = spawn('sleep', ['600'], { stdio: 'ignore', detached: true });
  say(`started, with child ${pid}`);
  await Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index)));
} catch (error) {
  say(error instanceof Error ? error.message : `${error}`);
}
