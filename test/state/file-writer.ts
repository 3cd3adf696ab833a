import { writeSync } from 'node:fs';
import { FileState } from '../../builtins/state-file/file-state.ts';

/** The value that a change leaves, by its number; a key is deleted now and then. */
export function contentOf(round: string, count: number): string | undefined {
  return count % 23 === 22 ? undefined : `${round}.${count} ${'x'.repeat(4000)}`;
}

/** Keys that a writer changes one after the other. */
export const KEYS_EACH = 8;

/**
 * Changes a state file as fast as it can until it is killed, and says each change that was acknowledged: key and number.
 * Arguments: the file, what values begin with.
 */
const [path = '', round = ''] = process.argv.slice(2);
const WRITERS = 8;

/** A test that is slow to listen holds this up. */
function say(line: string): void {
  try {
    writeSync(1, `${line}\n`);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
    say(line);
  }
}

const log = { debug() {}, info() {}, warn: say, error: say };
const engine = new FileState(path, { log, now: Date.now, path: (relative) => relative });

async function write(writer: number): Promise<void> {
  const area = engine.area('a');
  for (let count = 0; ; ) {
    const key = `${writer}.${count % KEYS_EACH}`;
    try {
      await area.swap(key, await area.get(key), contentOf(round, count), { durable: true });
      say(`ack ${key} ${count}`);
      count++;
    } catch (error) {
      say(`refused ${error instanceof Error ? error.message : error}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

if (path !== '') {
  try {
    await engine.start();
    say('started');
    await Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index)));
  } catch (error) {
    say(error instanceof Error ? error.message : `${error}`);
  }
}
