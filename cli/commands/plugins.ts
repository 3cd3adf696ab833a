import type { Given } from '../arguments.ts';
import { describeService } from '../service.ts';
import { readEnvironment, userPath } from '../surroundings.ts';
import { print } from '../terminal.ts';
import { align, escapeUnprintable } from '../text.ts';

type Stages = Awaited<ReturnType<typeof describeService>>;

/** Prints every stage in order, what happens when it fails, and who taps it with which budget. */
export async function printPlugins(given: Given): Promise<number> {
  const file = userPath(given.value('config'));
  const env = await readEnvironment(given.optional('env'));
  await print(`${describe(await describeService({ file, env })).join('\n')}\n`);
  return 0;
}

function describe(stages: Stages): string[] {
  const rows = stages.flatMap(({ stage, failure, taps }) => [
    [stage, '', '', `fails ${failure}`],
    ...taps.map(({ plugin, variant = '', budget }, i) => [
      `  ${i + 1}. ${escapeUnprintable(plugin)}`,
      escapeUnprintable(variant),
      budget === 'none' ? 'no budget' : `${budget} ms`,
      '',
    ]),
  ]);
  return align([['STAGE / PLUGIN', 'VARIANT', 'BUDGET', 'ON FAILURE'], ...rows]);
}
