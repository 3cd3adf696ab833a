import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { engineOn } from './file-setup.ts';

/**
 * Draws numbers from a state file as fast as it can until it is killed, and says each that is its own. Others may draw from the same file.
 * Arguments: the file, and the writer's name, which is what stands under its numbers.
 */
const [path = '', name = ''] = process.argv.slice(2);
const LOOPS = 8;

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

const engine = engineOn(path);

/** Takes the next number, and writes its name under it. */
async function draw(): Promise<void> {
  const area = engine.area('draws');
  const last = await area.get('last');
  const next = `${Number(last ?? 0) + 1}`;
  if ((await area.compareAndSet('last', last, next, { durable: true })) !== undefined) return;
  await area.compareAndSet(next, undefined, `${name} ${'x'.repeat(1000)}`, { durable: true });
  say(`ack ${next}`);
}

async function drawOn(): Promise<void> {
  for (;;) {
    try {
      await draw();
    } catch (error) {
      say(`refused ${error instanceof Error ? error.message : error}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

try {
  await engine.start();
  // One that outlives this process, and must hold up nobody.
  const { pid } = spawn('sleep', ['600'], { stdio: 'ignore', detached: true });
  say(`started, with child ${pid}`);
  await Promise.all(Array.from({ length: LOOPS }, drawOn));
} catch (error) {
  say(error instanceof Error ? error.message : `${error}`);
}
