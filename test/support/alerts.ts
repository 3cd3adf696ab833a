import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { readPage } from './docs.ts';
import type { Scrape } from './metrics.ts';

/** The rules for Prometheus. */
export const ALERTS = 'examples/deploy/chart/alerts.yaml';

export const withoutPromtool = spawnSync('promtool', ['--version']).status === 0 ? false : 'promtool is not installed';

/** What a service exported, as seen for so many minutes. */
export interface Seen {
  readonly scrape: Scrape;
  readonly minutes: number;
}

/** What a query finds. */
export interface Finding {
  readonly expr: string;
  readonly found: readonly { readonly labels: string; readonly value: number }[];
  /** Of the scrapes, how many have been seen by then; all of them by default. */
  readonly after?: number;
}

/** Which alerts fire, among those asked for. */
function firing(asked: readonly string[], expected: readonly string[]): Finding {
  const found = expected.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  return { expr: `group by (alertname) (ALERTS{alertstate="firing", alertname=~"${asked.join('|')}"})`, found };
}

/** For which series a query finds something. */
export function finding(query: string, ...expected: readonly Readonly<Record<string, string>>[]): Finding {
  const found = expected.map((each) => ({ labels: braced(each), value: 1 }));
  return { expr: `count by (${Object.keys(expected[0] ?? {}).join(', ')}) (${query})`, found };
}

/**
 * Has promtool find out which alerts fire.
 * @param expected names of the alerts that fire in the end, among those asked for.
 */
export function assertFiring(
  t: TestContext,
  scrapes: readonly Seen[],
  asked: readonly string[],
  expected: readonly string[],
): Promise<void> {
  return assertFindings(t, scrapes, [firing(asked, expected)]);
}

/** Has promtool find out that none of the alerts fires after the first scrape, and which do in the end, with what else is found then. */
export function assertFires(
  t: TestContext,
  scrapes: readonly Seen[],
  asked: readonly string[],
  expected: readonly string[] = asked,
  ...more: readonly Finding[]
): Promise<void> {
  return assertFindings(t, scrapes, [{ ...firing(asked, []), after: 1 }, firing(asked, expected), ...more]);
}

function braced(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`)
    .join(',')}}`;
}

async function assertFindings(t: TestContext, scrapes: readonly Seen[], findings: readonly Finding[]): Promise<void> {
  const rules = await readPage(ALERTS);
  const asked = [rules, ...findings.map(({ expr }) => expr)].join('\n');
  const seen = scrapes.map(({ scrape, minutes }) => {
    // Others make no difference, and promtool slow.
    const samples = scrape.samples.filter(({ name }) => asked.includes(name));
    return { minutes, values: new Map(samples.map(({ name, labels, value }) => [`${name}${braced(labels)}`, value])) };
  });
  const allSeries = [...new Set(seen.flatMap(({ values }) => [...values.keys()]))];
  const valuesOf = (series: string) =>
    seen.flatMap(({ minutes, values }) => Array<number | string>(minutes).fill(values.get(series) ?? '_'));
  const minuteOf = (after: number) => scrapes.slice(0, after).reduce((sum, { minutes }) => sum + minutes, -1);
  const test = {
    rule_files: ['alerts.yaml'],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: allSeries.map((series) => ({ series, values: valuesOf(series).join(' ') })),
        promql_expr_test: findings.map(({ expr, found, after = scrapes.length }) => {
          return { expr, eval_time: `${minuteOf(after)}m`, exp_samples: found };
        }),
      },
    ],
  };
  const cwd = await folderWith(t, { 'alerts.yaml': rules, 'test.yaml': JSON.stringify(test) });
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yaml'], { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}
