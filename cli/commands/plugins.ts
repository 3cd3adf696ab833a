import { routeKey } from '../../kernel/registry.ts';
import { stageNames, stages } from '../../kernel/stages.ts';
import { listPlugins } from '../../service/index.ts';
import { print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import type { Given } from '../arguments.ts';
import { printJson } from '../json-output.ts';
import { givenService } from './given-config.ts';

/** Prints every stage in order with its failure policy, plugins and budgets; then the routes and the observers. */
export async function printPlugins(given: Given): Promise<void> {
  const shown = shownOf(await listPlugins(await givenService(given)));
  if (given.flag('json')) await printJson({ ok: true, ...shown });
  else await print(`${tableOf(shown).join('\n')}\n`);
}

const inner = stageNames.filter((stage) => stage !== 'route');

/** Returns the output for programs. A budget is in milliseconds; null means none. */
function shownOf({ taps, plugins, isolated }: Awaited<ReturnType<typeof listPlugins>>) {
  const milliseconds = (budget: number | 'none') => (budget === 'none' ? null : budget);
  return {
    stages: inner.map((stage) => ({
      stage,
      fails: stages[stage].fails ?? 'closed',
      plugins: taps[stage].map(({ plugin, variant, budget }) => ({
        plugin,
        ...(variant && { variant }),
        budget: milliseconds(budget),
        isolated: isolated.has(plugin),
      })),
    })),
    routes: plugins.flatMap(({ name, plugin: { routes = [] } }) =>
      routes.map((route) => {
        const { method, path, admit } = route;
        const { budget = 'none' } = taps.route.find(({ variant }) => variant === routeKey(route)) ?? {};
        return { method, path, plugin: name, budget: milliseconds(budget), admit };
      }),
    ),
    observers: plugins.flatMap(({ name, plugin }) => (plugin.observe === undefined ? [] : [name])),
  };
}

/** Returns the output for people. */
function tableOf({ stages, routes, observers }: ReturnType<typeof shownOf>): string[] {
  const budgetText = (budget: number | null) => (budget === null ? 'no budget' : `${budget} ms`);
  const rows = stages.flatMap(({ stage, fails, plugins }) => [
    [stage, '', '', `fails ${fails}`],
    ...plugins.map(({ plugin, variant = '', budget, isolated }, i) => [
      `  ${i + 1}. ${escapeUnprintable(plugin)}`,
      escapeUnprintable(variant),
      `${budgetText(budget)}${isolated ? ', isolated' : ''}`,
      '',
    ]),
  ]);
  const routeRows = routes.map(({ method, path, plugin, budget, admit }) => [
    `${method} ${path}`,
    escapeUnprintable(plugin),
    budgetText(budget),
    admit ? 'admit' : 'no gate',
  ]);
  return [
    ...align([['STAGE / PLUGIN', 'VARIANT', 'BUDGET', 'ON FAILURE'], ...rows]),
    '',
    ...align([['ROUTE', 'PLUGIN', 'BUDGET', 'BEHIND'], ...routeRows]),
    '',
    'OBSERVERS (told of every request, and change nothing)',
    ...observers.map((name) => `  ${escapeUnprintable(name)}`),
  ];
}
