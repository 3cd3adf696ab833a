import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { stringify } from 'yaml';
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

/**
 * Has promtool find out which alerts fire.
 * @param expected names of the alerts that fire in the end, among those asked for.
 */
export async function assertFiring(
  t: TestContext,
  scrapes: readonly Seen[],
  asked: readonly string[],
  expected: readonly string[],
): Promise<void> {
  const firing = `group by (alertname) (ALERTS{alertstate="firing", alertname=~"${asked.join('|')}"})`;
  const samples = expected.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  await assertSamples(t, scrapes, firing, samples);
}

/** Has promtool find out for which series a query finds something in the end. */
export async function assertFound(
  t: TestContext,
  scrapes: readonly Seen[],
  query: string,
  expected: readonly Readonly<Record<string, string>>[],
): Promise<void> {
  const labels = Object.keys(expected[0] ?? {}).join(', ');
  const samples = expected.map((each) => ({ labels: braced(each), value: 1 }));
  await assertSamples(t, scrapes, `count by (${labels}) (${query})`, samples);
}

function braced(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`)
    .join(',')}}`;
}

async function assertSamples(
  t: TestContext,
  scrapes: readonly Seen[],
  expr: string,
  samples: readonly { readonly labels: string; readonly value: number }[],
): Promise<void> {
  const rules = await readPage(ALERTS);
  const keys = new Map(
    scrapes.flatMap(({ scrape }) =>
      scrape.samples.map(({ name, labels }) => [`${name}${braced(labels)}`, [name, labels]] as const),
    ),
  );
  const values = (name: string, labels: Readonly<Record<string, string>>) =>
    scrapes.flatMap(({ scrape, minutes }) => Array<number | string>(minutes).fill(scrape.value(name, labels) ?? '_'));
  const minutes = scrapes.reduce((sum, scrape) => sum + scrape.minutes, 0);
  const test = {
    rule_files: ['alerts.yaml'],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: [...keys].map(([series, [name, labels]]) => ({ series, values: values(name, labels).join(' ') })),
        promql_expr_test: [{ expr, eval_time: `${minutes - 1}m`, exp_samples: samples }],
      },
    ],
  };
  const cwd = await folderWith(t, { 'alerts.yaml': rules, 'test.yaml': stringify(test) });
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yaml'], { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}
