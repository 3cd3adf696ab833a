/** Pages of the benchmark show the figures that were measured. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { svgOf, ticksOf } from '../../tools/bench/chart.ts';
import { curves } from '../../tools/bench/curve-list.ts';
import { comparison, table, withMarked } from '../../tools/bench/table.ts';
import { PACKAGE_ROOT } from '../cli/run.ts';

describe('tables', () => {
  it('are Markdown', () => {
    assert.equal(table(['a', 'b'], [[1, 'x']]), '| a | b |\n|---|---|\n| 1 | x |');
  });

  it('compare with the first of a group, round by round', () => {
    const turn = (cpu: number, perSecond: number) => ({ cpu, perSecond, p50: 3, p99: 9, requests: 10 });
    const floor = { name: 'floor', turns: [turn(100, 10), turn(200, 5), turn(100, 10)] };
    const own = { name: 'own', turns: [turn(200, 5), turn(400, 5), turn(50, 20)] };
    const [, , ...rows] = comparison([[floor, own]]).split('\n');
    assert.deepEqual(rows, [
      '| floor | 10 |  | 100 |  | 3 | 9 |',
      '| own | 5 | 1.00 (0.60–1.80) | 200 | 0.50 (0.50–1.70) | 3 | 9 |',
    ]);
  });

  it('take the place of those between their markers', () => {
    const page = 'a\n<!-- bench: x -->\nold\n<!-- /bench: x -->\nb\n';
    const once = withMarked(page, 'x', 'new');
    assert.equal(once, 'a\n<!-- bench: x -->\n\nnew\n\n<!-- /bench: x -->\nb\n');
    assert.equal(withMarked(once, 'x', 'new'), once);
    assert.throws(() => withMarked(page, 'y', ''), {
      message: 'the page has no <!-- bench: y --> with <!-- /bench: y --> behind it',
    });
  });
});

describe('charts', () => {
  const points = [
    { label: '1 KiB', low: 1, middle: 1, high: 1 },
    { label: '<1 MiB>', low: 1.5, middle: 2, high: 2.25 },
  ];
  const chart = { title: 'Sizes & more', across: 'size', up: 'CPU', isLine: true, points };

  it('have round steps, and tenfold ones where values are far apart', () => {
    assert.deepEqual(ticksOf(1, 2.3), [0, 0.5, 1, 1.5, 2, 2.5]);
    assert.deepEqual(ticksOf(0.4, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]);
    assert.deepEqual(ticksOf(0.9, 140), [1, 10, 100, 1000]);
  });

  it('say what they show to those who do not see it', () => {
    const svg = svgOf(chart);
    assert.ok(svg.includes('role="img" aria-labelledby="title desc"'));
    assert.ok(svg.includes('<title id="title">Sizes &#38; more</title>'));
    assert.ok(svg.includes('<desc id="desc">CPU, by size. 1 KiB: 1; &#60;1 MiB&#62;: 2</desc>'));
    assert.ok(svg.includes('prefers-color-scheme: dark'));
  });

  it('join the steps of one quantity by a line, and set other things side by side', () => {
    const count = (text: string, isLine: boolean) => svgOf({ ...chart, isLine }).split(text).length - 1;
    assert.deepEqual([count('<polyline class="line" points="204,150 484,77"', true), count('<circle', true)], [1, 2]);
    assert.deepEqual([count('<polyline', false), count('<path class="bar"', false)], [0, 2]);
  });
});

describe('docs/performance.md', () => {
  it('shows the picture and the table of each curve', async () => {
    const page = await readFile(join(PACKAGE_ROOT, 'docs/performance.md'), 'utf8');
    for (const [name, { across }] of Object.entries(curves)) {
      assert.ok(page.includes(`](images/performance/${name}.svg)`), name);
      assert.ok(page.includes(`<!-- bench: ${name} -->\n\n| ${across} | CPU µs a request |`), name);
    }
  });
});
