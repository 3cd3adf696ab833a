/** The Grafana dashboard asks for metrics that there are. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { missingFrom, selectedBy } from '../support/metrics.ts';
import { scrapeEverything } from '../support/metrics-service.ts';

interface Position {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Position;
  readonly datasource?: unknown;
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
    readonly datasource: unknown;
  }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
  readonly datasource?: unknown;
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly title: string;
  readonly uid: string;
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
}

const SOURCE = { type: 'prometheus', uid: ['$', '{DS_PROMETHEUS}'].join('') };

const dashboard: Dashboard = JSON.parse(await readFile(join(PACKAGE_ROOT, 'examples/grafana/dashboard.json'), 'utf8'));
const { panels } = dashboard;
const charts = panels.filter(({ type }) => type !== 'row');
const targets = charts.flatMap((panel) => (panel.targets ?? []).map((target) => ({ panel, target })));

function overlap(a: Position, b: Position): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

describe('the Grafana dashboard', async () => {
  const everything = await scrapeEverything();

  it('is of the schema of Grafana 10 and 11, with the rows of an operator', () => {
    assert.equal(dashboard.schemaVersion, 39);
    const titles = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    assert.deepEqual(titles, [
      ...['Traffic', 'Latency', 'Upstream', 'Cache', 'Plugins', 'Async', 'Payments and proofs'],
      ...['Signers', 'State', 'Process'],
    ]);
    assert.deepEqual([...new Set(charts.map(({ type }) => type))].toSorted(), ['stat', 'timeseries']);
  });

  it('asks the data source that the reader chooses, and no other', () => {
    const [source, ...variables] = dashboard.templating.list;
    assert.deepEqual([source?.name, source?.type, source?.query], ['DS_PROMETHEUS', 'datasource', 'prometheus']);
    for (const { datasource } of [...charts, ...variables, ...targets.map(({ target }) => target)])
      assert.deepEqual(datasource, SOURCE);
  });

  it('has panels side by side, each with an id of its own', () => {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    for (const [index, { gridPos, title }] of panels.entries()) {
      assert.ok(gridPos.x >= 0 && gridPos.w > 0 && gridPos.h > 0 && gridPos.x + gridPos.w <= 24, title);
      const other = panels.slice(index + 1).find((panel) => overlap(panel.gridPos, gridPos));
      assert.equal(other, undefined, `${title} and ${other?.title}`);
    }
  });

  it('asks in every panel, for metrics and labels that a service exports', () => {
    assert.ok(targets.length > 40);
    for (const { title, targets: own = [] } of charts) assert.ok(own.length > 0, title);
    const missing = targets.flatMap(({ panel, target }) =>
      missingFrom(everything, target.expr).map((what) => `${panel.title}: ${what}`),
    );
    assert.deepEqual(missing, []);
  });

  it('names in a legend only labels that the series have', () => {
    for (const { panel, target } of targets) {
      const named = [...target.legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
      const aggregated = /\bsum\b|histogram_quantile/.test(target.expr);
      const known = aggregated
        ? [...target.expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, by = '']) => by.split(', '))
        : ['instance'];
      const unknown = named.filter((label) => !known.includes(label));
      assert.deepEqual(unknown, [], panel.title);
    }
  });

  it('uses the variables that it has', () => {
    const variables = dashboard.templating.list;
    const text = JSON.stringify(dashboard);
    const used = new Set([...text.matchAll(/\$\{?(\w+)/g)].map(([, name = '']) => name));
    const known = [...variables.map(({ name }) => name), '__rate_interval', '__all'];
    assert.deepEqual([...used].toSorted(), known.toSorted());
    const queries = variables.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));
    const asked = queries.map((query) => /^label_values\((.+), (\w+)\)$/.exec(query) ?? assert.fail(query));
    assert.deepEqual(
      asked.flatMap(([, series = '', label = '']) => missingFrom(everything, `sum by (${label}) (${series})`)),
      [],
    );
  });

  it('shows every metric of the service', () => {
    const shown = new Set(targets.flatMap(({ target }) => selectedBy(target.expr).map(({ name }) => name)));
    const metrics = [...everything.types].filter(([name]) => name.startsWith('signed_data_proxy_'));
    const hidden = metrics.filter(([name, type]) => {
      const names = type === 'histogram' ? ['bucket', 'sum', 'count'].map((end) => `${name}_${end}`) : [name];
      return !names.some((candidate) => shown.has(candidate));
    });
    assert.deepEqual(hidden, []);
  });
});

describe('the reading of PromQL in these tests', () => {
  it('finds metrics and labels', () => {
    const expression =
      'histogram_quantile(0.9, sum by (a, le) (rate(x_bucket{i=~"$i", s!="a{b}", c="d"}[5m]))) / y or z';
    assert.deepEqual(selectedBy(expression), [
      { name: 'x_bucket', labels: ['i', 's', 'c', 'a', 'le'] },
      { name: 'y', labels: ['a', 'le'] },
      { name: 'z', labels: ['a', 'le'] },
    ]);
    assert.deepEqual(selectedBy('time() - start{i="1"} > 0.5'), [{ name: 'start', labels: ['i'] }]);
  });
});
