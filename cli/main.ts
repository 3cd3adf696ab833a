import { writeSync } from 'node:fs';
import { runCommandLine } from './command-line.ts';
import { watchForCrashes } from './crash.ts';
import { complain, describeError } from './terminal.ts';

let done = false;
watchForCrashes();
process.on('exit', (code) => {
  if (done || code !== 0) return;
  writeSync(2, 'error: the process was ended by code that is not its own, such as process.exit() in a plugin\n');
  process.exitCode = 1;
});
// A reader that has gone away is no error of ours.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
try {
  const code = await runCommandLine(process.argv.slice(2));
  done = true;
  process.exit(code);
} catch (error) {
  await complain('error', describeError(error));
  process.exit(1);
}
