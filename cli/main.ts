import { end, watchForCrashes } from '../service/crash.ts';
import { complain, describeError } from '../service/terminal.ts';
import { runCommandLine } from './command-line.ts';

watchForCrashes();
// It is no error of the program if the reader of its output is gone.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
try {
  end(await runCommandLine(process.argv.slice(2)));
} catch (error) {
  await complain('error', describeError(error));
  end(1);
}
