import type { Given } from '../arguments.ts';
import { describeService } from '../service.ts';
import { readEnvironment, userPath } from '../surroundings.ts';
import { print } from '../terminal.ts';
import { align, escapeUnprintable } from '../text.ts';

type Description = Awaited<ReturnType<typeof describeService>>;

/** Prints every stage in order, what happens when it fails, who taps it with which budget; the routes; who observes. */
export async function printPlugins(given: Given): Promise<number> {
  const file = userPath(given.value('config'));
  const env = await readEnvironment(given.optional('env'));
  await print(`${describe(await describeService({ file, env })).join('\n')}\n`);
  return 0;
}

function budgetText({ budget }: { readonly budget: number | 'none' }): string {
  return budget === 'none' ? 'no budget' : `${budget} ms`;
}

function describe({ stages, routes, observers }: Description): string[] {
  const rows = stages.flatMap(({ stage, failure, taps }) => [
    [stage, '', '', `fails ${failure}`],
    ...taps.map(({ plugin, variant = '', budget }, i) => [
      `  ${i + 1}. ${escapeUnprintable(plugin)}`,
      escapeUnprintable(variant),
      budgetText({ budget }),
      '',
    ]),
  ]);
  const table = routes.map((route) => [
    `${route.method} ${route.path}`,
    escapeUnprintable(route.plugin),
    budgetText(route),
    route.admit ? 'admit' : 'no gate',
  ]);
  return [
    ...align([['STAGE / PLUGIN', 'VARIANT', 'BUDGET', 'ON FAILURE'], ...rows]),
    '',
    ...align([['ROUTE', 'PLUGIN', 'BUDGET', 'BEHIND'], ...table]),
    '',
    'OBSERVERS (told of every request, and change nothing)',
    ...observers.map((plugin) => `  ${escapeUnprintable(plugin)}`),
  ];
}
