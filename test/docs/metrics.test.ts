/** docs/metrics.md has each metric as the service tells it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';
import { ALERTS, withoutPromtool } from '../support/alerts.ts';
import { warningsOf } from '../support/config.ts';
import { filesOf, readPage, textsOf } from '../support/docs.ts';
import { missingFrom, scrapeAfter } from '../support/metrics.ts';
import { scrapeEverything } from '../support/metrics-service.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const page = await readPage('docs/metrics.md');
const alerts = await readPage(ALERTS);
const files = filesOf(page);

function fileOf(name: string): string {
  return files.get(name) ?? assert.fail(`docs/metrics.md has no ${name}`);
}

interface Rules {
  readonly groups: readonly {
    readonly name: string;
    readonly rules: readonly {
      readonly alert: string;
      readonly labels: { readonly severity: string };
      readonly annotations: { readonly summary: string; readonly runbook_url: string };
      readonly expr: string;
      readonly for?: string;
    }[];
  }[];
}

/** What promtool finds, warnings included. */
function promtool(input: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', ...args], { input, encoding: 'utf8' });
  return status === 0 && stderr === '' ? '' : `exit code ${status}: ${stdout}${stderr}`;
}

describe('docs/metrics.md', async () => {
  const everything = await scrapeEverything();

  it('lists every metric with its kind and its labels, and no other', () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*?) ?\| (.+) \|$/gm)];
    const listed = rows.map(([, name = '', type, labels = '']) => {
      const own = labels === '' ? [] : labels.split(', ').map((label) => label.replace(/^`(.*)`$/, '$1'));
      return [name, { type, labels: own.toSorted() }] as const;
    });
    const exported = [...everything.types].map(([name, type]) => {
      const labels = everything.samples
        .filter((sample) => everything.metricOf(sample) === name)
        .flatMap((sample) => Object.keys(sample.labels).filter((label) => label !== 'le'));
      return [name, { type, labels: [...new Set(labels)].toSorted() }] as const;
    });
    assert.equal(listed.length, exported.length);
    assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(exported));
  });

  it('and every metric says itself what it is', () => {
    assert.deepEqual([...everything.helps.keys()], [...everything.types.keys()]);
  });

  it('its config is valid and unsuspicious', async () => {
    const config: { readonly settings: unknown } = parse(fileOf('config.yaml'));
    assert.deepEqual(config.settings, { metrics: { port: 9464 } });
    const warnings = await warningsOf(config);
    assert.deepEqual(
      warnings.filter((line) => line.includes('metrics')),
      [],
    );
  });

  it('Prometheus is told to ask the address of that config', () => {
    assert.deepEqual(parse(fileOf('prometheus.yaml')), {
      scrape_configs: [
        {
          job_name: 'signed-data-proxy',
          scrape_interval: '15s',
          static_configs: [{ targets: ['127.0.0.1:9464'] }],
        },
      ],
    });
  });

  it('promtool finds nothing in its files, nor in what the service exports', { skip: withoutPromtool }, async (t) => {
    const cwd = await folderWith(t, {
      'prometheus.yaml': fileOf('prometheus.yaml'),
      'alerts.yaml': alerts,
    });
    assert.equal(promtool('', 'config', '--lint=all', '--lint-fatal', join(cwd, 'prometheus.yaml')), '');
    assert.equal(promtool('', 'rules', '--lint=all', '--lint-fatal', join(cwd, 'alerts.yaml')), '');
    assert.equal(promtool(everything.text, 'metrics'), '');
  });

  it('its alerts and its expressions ask for what there is', () => {
    const { groups }: Rules = parse(alerts);
    const rules = groups.flatMap((group) => group.rules);
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const rule of rules) assert.match(rule.for ?? '1m', /^\d+m$/, rule.alert);
    const expressions = [...rules.map(({ expr }) => expr), ...textsOf(page, 'text')];
    assert.ok(expressions.length > 10);
    assert.deepEqual(
      expressions.flatMap((expression) => missingFrom(everything, expression)),
      [],
    );
    const jobs = expressions.flatMap((expression) => [...expression.matchAll(/job="([^"]*)"/g)].map(([, job]) => job));
    assert.deepEqual(jobs, ['signed-data-proxy']);
  });

  it('each alert says how bad it is, and leads to its row in docs/troubleshooting.md, which says the same', async () => {
    const { groups }: Rules = parse(alerts);
    const rules = groups.flatMap((group) => group.rules);
    const rows = [
      ...(await readPage('docs/troubleshooting.md')).matchAll(
        /^\| <a id="(\w+)"><\/a>`(\w+)` \| (critical|warning) \| \S.* \|$/gm,
      ),
    ];
    assert.deepEqual(
      rows.map(([, anchor, name, severity]) => [name, severity, `https://docs.example/troubleshooting.md#${anchor}`]),
      rules.map(({ alert, labels, annotations }) => [alert, labels.severity, annotations.runbook_url]),
    );
    for (const [, anchor, name] of rows) assert.equal(anchor, name?.toLowerCase());
  });

  it('each alert, and each symptom in docs/troubleshooting.md, has a drill in which it is found', async () => {
    const { groups }: Rules = parse(alerts);
    const symptoms = [...(await readPage('docs/troubleshooting.md')).matchAll(/^\| (.+?) \| `.+` \| .+ \|$/gm)];
    const wanted = [
      ...groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)),
      ...symptoms.map(([, name = '']) => name),
    ];
    assert.ok(symptoms.length > 20);
    const folder = new URL('../incidents/', import.meta.url);
    const names = await readdir(folder);
    const drills = await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')));
    const audit = await readFile(new URL('../cli/audit.test.ts', import.meta.url), 'utf8');
    const isIn = (text: string, name: string) => text.includes(`'${name}'`);
    assert.deepEqual(
      wanted.filter((name) => ![...drills, audit].some((text) => isIn(text, name))),
      [],
    );
  });

  it('its plugin measures what it says', async (t) => {
    const cwd = await folderWith(t, { 'price-age.ts': fileOf('price-age.ts') });
    await mkdir(join(cwd, 'node_modules'));
    await symlink(PACKAGE_ROOT, join(cwd, 'node_modules/signed-data-proxy'));
    const time = Math.floor(Date.now() / 1000) - 40;
    const upstream = await upstreamFor(t, { '*': faults.json({ price: 1, time }), '/timeless': faults.json([1]) });
    const settings = { metrics: { port: 0 }, plugins: [{ source: join(cwd, 'price-age.ts') }] };
    const service = await serviceFor(t, oneApi(upstream.url, { plain: {}, timeless: {} }, { settings }));
    for (const name of ['plain', 'plain', 'timeless']) assert.equal((await service.post(`api/${name}`)).status, 200);
    const found = await scrapeAfter(service, 3);
    assert.equal(found.value('newest_price_timestamp_seconds'), time);
    assert.equal(found.value('price_age_seconds_count', { api: 'api' }), 2);
    assert.equal(found.value('price_age_seconds_bucket', { api: 'api', le: '30' }), 0);
    assert.equal(found.table('plugin_calls_total')['price-age onAfterApiCall done'], 3);
    for (const name of ['price_age_seconds', 'newest_price_timestamp_seconds'])
      assert.ok(page.includes(`\`signed_data_proxy_${name}`), name);
  });
});
