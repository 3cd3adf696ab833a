import { stageNames, stageOf } from '../../kernel/stages.ts';
import { describeService } from '../../service/index.ts';
import { print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import type { Given } from '../arguments.ts';
import { printJson } from '../json-output.ts';
import { givenService } from './given-config.ts';

/** Prints every stage in order, what happens when it fails, who taps it with which budget; the routes; who observes. */
export async function printPlugins(given: Given): Promise<number> {
  const described = await describeService(await givenService(given));
  if (given.flag('json')) await printJson({ ok: true, ...pluginJson(described) });
  else await print(`${pluginTable(described).join('\n')}\n`);
  return 0;
}

type Described = Awaited<ReturnType<typeof describeService>>;

const inner = stageNames.filter((stage) => stage !== 'route');

/** The same as the table, for programs. A budget is in milliseconds; null: none. */
function pluginJson({ taps, plugins, isolated }: Described) {
  const milliseconds = (budget: number | 'none') => (budget === 'none' ? null : budget);
  return {
    stages: inner.map((stage) => ({
      stage,
      fails: stageOf(stage).fails ?? 'closed',
      plugins: taps[stage].map(({ plugin, variant, budget }) => ({
        plugin,
        ...(variant && { variant }),
        budget: milliseconds(budget),
        isolated: isolated.has(plugin),
      })),
    })),
    routes: plugins.flatMap(({ name, budget, plugin: { routes = [] } }) =>
      routes.map(({ method, path, admit }) => ({ method, path, plugin: name, budget: milliseconds(budget), admit })),
    ),
    observers: plugins.flatMap(({ name, plugin }) => (plugin.observe === undefined ? [] : [name])),
  };
}

function budgetText({ budget }: { readonly budget: number | 'none' }): string {
  return budget === 'none' ? 'no budget' : `${budget} ms`;
}

function pluginTable({ taps, plugins, isolated }: Described): string[] {
  const rows = inner.flatMap((stage) => [
    [stage, '', '', `fails ${stageOf(stage).fails ?? 'closed'}`],
    ...taps[stage].map(({ plugin, variant = '', budget }, i) => [
      `  ${i + 1}. ${escapeUnprintable(plugin)}`,
      escapeUnprintable(variant),
      `${budgetText({ budget })}${isolated.has(plugin) ? ', isolated' : ''}`,
      '',
    ]),
  ]);
  const routes = plugins.flatMap(({ name, budget, plugin: { routes = [] } }) =>
    routes.map(({ method, path, admit }) => [
      `${method} ${path}`,
      escapeUnprintable(name),
      budgetText({ budget }),
      admit ? 'admit' : 'no gate',
    ]),
  );
  const observers = plugins.filter(({ plugin }) => plugin.observe !== undefined);
  return [
    ...align([['STAGE / PLUGIN', 'VARIANT', 'BUDGET', 'ON FAILURE'], ...rows]),
    '',
    ...align([['ROUTE', 'PLUGIN', 'BUDGET', 'BEHIND'], ...routes]),
    '',
    'OBSERVERS (told of every request, and change nothing)',
    ...observers.map(({ name }) => `  ${escapeUnprintable(name)}`),
  ];
}
