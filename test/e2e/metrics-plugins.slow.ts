/** Plugins measure by instruments of their own, within bounds. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { scrape, scrapeAfter } from '../support/metrics.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { oneApi, type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const metrics = { port: 0 };
type Sources = Readonly<Record<string, string>>;

/** A plugin file whose `setup` is this code, with `meters` at hand. */
function measuring(name: string, setup: string): string {
  return `export default { name: '${name}', setup({ meters }) { ${setup} } };`;
}

/** Counts requests as `seen_total`, and has `level` say a number. */
const counting = (name: string, level: number) =>
  measuring(
    name,
    `const seen = meters.counter({ name: 'seen_total', help: 'x', labels: ['stage'] });
    meters.gauge({ name: 'level', help: 'x' }, () => ${level});
    return { hooks: { onBeforeApiCall: () => seen({ stage: 'before' }, 1) } };`,
  );

describe('instruments of plugins', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }) });

  const configOf = (sources: Sources, settings: object = { metrics }) => {
    const { files, plugins } = pluginFiles(sources);
    const endpoints = { plain: { parameters: [{ name: 'q' }] }, later: { mode: 'async' } };
    return { files, config: oneApi(upstream.url, endpoints, { settings: { ...settings, plugins } }) };
  };
  const start = async (t: TestContext, sources: Sources): Promise<RunningService> => {
    const { config, files } = configOf(sources);
    return await serviceFor(t, config, { files });
  };
  /** Whether the service took over this config. */
  const reloaded = async (service: RunningService, { config, files }: ReturnType<typeof configOf>) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(service.folder, name), text);
    return (await reload(service, config)).done;
  };
  const ask = async (service: RunningService, q?: string) => {
    const response = await service.post('api/plain', q === undefined ? {} : { q });
    assert.equal(response.status, 200, await response.text());
  };
  /** The line is that of the settings. */
  const withoutLine = (message: unknown) => String(message).replace(/ \(line \d+\)/, '');
  const fails = async (sources: Sources, message: string, settings?: object) => {
    const { config, files } = configOf(sources, settings);
    await assert.rejects(startTestService(config, { files }), (error: Error) => {
      assert.equal(withoutLine(error.message), message);
      return true;
    });
  };

  describe('that replace one of a built-in plugin stop the start', () => {
    const seconds = 'the histogram "upstream_call_seconds"';
    const held = {
      requests_total: ['metrics', 'the counter "requests_total"'],
      async_records: ['mode-async', 'the gauge "async_records"'],
      upstream_slots_in_use: ['call-api', 'the gauge "upstream_slots_in_use"'],
      upstream_call_seconds: ['call-api', seconds],
      upstream_call_seconds_count: ['call-api', seconds],
      rate_limited_total: ['rate-limit', 'the counter "rate_limited_total"'],
    };
    for (const [name, [plugin, what]] of Object.entries(held)) {
      it(`${name}, whatever the kind, with metrics and without`, async () => {
        for (const kind of ['counter', 'gauge', 'histogram']) {
          const twin = measuring('twin', `meters.${kind}({ name: '${name}', help: 'x' }, () => 1); return {};`);
          const message = `settings.plugins[0]: plugin "twin" of ./twin.mjs cannot be set up: the name of the instrument "${name}" is taken by ${what} of plugin "${plugin}"`;
          await fails({ twin }, message);
          await fails({ twin }, message, {});
        }
      });
    }
  });

  it('that replace one of another plugin stop the start', async () => {
    const taken = 'the name of the instrument "seen_total" is taken by the counter "seen_total" of plugin "one"';
    const message = `settings.plugins[1]: plugin "two" of ./two.mjs cannot be set up: ${taken}`;
    await fails({ one: counting('one', 1), two: counting('two', 2) }, message);
  });

  it('that nobody could export stop the start', async () => {
    const bad: [string, string][] = [
      [`{ name: 'not-snake', help: 'x' }`, 'the name of the instrument "not-snake" is not in snake case'],
      [`{ name: 'a', help: '' }`, 'the instrument "a" has no help'],
      [`{ name: 'a', help: 'x', across: 'all' }`, 'the instrument "a" has no "across" of sum, min, max, average'],
      [`{ name: 'a', help: 'x', labels: ['le'] }`, 'the instrument "a" cannot have a label "le"'],
    ];
    for (const [spec, why] of bad) {
      const message = `settings.plugins[0]: plugin "p" of ./p.mjs cannot be set up: ${why}`;
      await fails({ p: measuring('p', `meters.counter(${spec}); return {};`) }, message, {});
    }
  });

  it('are the same after a reload, and a plugin in the place of another goes on with them', async (t) => {
    const service = await start(t, { one: counting('one', 1) });
    const read = async (requests: number) => {
      const found = await scrapeAfter(service, requests);
      return [found.value('seen_total', { stage: 'before' }), found.value('level')];
    };
    await ask(service);
    assert.deepEqual(await read(1), [1, 1]);
    assert.ok(await reloaded(service, configOf({ one: counting('one', 1) }, { metrics, maxConcurrentApiCalls: 7 })));
    await ask(service);
    assert.deepEqual(await read(2), [2, 1]);
    assert.ok(await reloaded(service, configOf({ two: counting('two', 2) })));
    await ask(service);
    assert.deepEqual(await read(3), [3, 2]);
  });

  it('cannot become others with a reload; what was refused leaves nothing behind', async (t) => {
    const service = await start(t, { one: counting('one', 1) });
    await ask(service);
    const tried = async (setup: string, name: string) => {
      const { length } = service.logs;
      const done = await reloaded(service, configOf({ [name]: measuring(name, setup) }));
      return done || withoutLine(service.logs.slice(length).find(({ level }) => level === 'error')?.message);
    };
    const taken = 'the name of the instrument "seen_total" is taken until a restart by the counter "seen_total"';
    assert.equal(
      await tried(`meters.gauge({ name: 'seen_total', help: 'x' }, () => 1); return {};`, 'three'),
      `settings.plugins[0]: plugin "three" of ./three.mjs cannot be set up: ${taken}`,
    );
    const lame = `meters.gauge({ name: 'fresh', help: 'x' }, () => 1); return { start() { throw new Error('lame'); } };`;
    assert.equal(await tried(lame, 'four'), 'plugin "four" cannot start: lame');
    assert.equal((await scrape(service)).types.has('signed_data_proxy_fresh'), false);
    assert.equal(await tried(`meters.counter({ name: 'fresh', help: 'x' }); return {};`, 'five'), true);
    assert.equal((await scrape(service)).types.get('signed_data_proxy_fresh'), 'counter');
  });

  describe('have 1,000 series each', () => {
    const chatty = measuring(
      'chatty',
      `const count = meters.counter({ name: 'asked_total', help: 'x', labels: ['q', 'kind'] });
      const time = meters.histogram({ name: 'asked_seconds', help: 'x', labels: ['q'] });
      return { hooks: { onBeforeApiCall({ parameters: { q } }) {
        for (let i = 0; i < Number(q); i++) { count({ q: 'q' + i, kind: 'a' }, 1); time({ q: i }, 1); }
        if (q === 'long') for (const length of [201, 200]) count({ q: 'x'.repeat(length), kind: 'a' }, 1);
      } } };`,
    );
    const FULL = 'an instrument has more series than are kept: the rest is under "other"';

    it('and what goes beyond is counted together, also after a reload', async (t) => {
      const service = await start(t, { chatty });
      for (const q of ['1000', '1005']) await ask(service, q);
      assert.ok(await reloaded(service, configOf({ chatty }, { metrics, maxConcurrentApiCalls: 7 })));
      await ask(service, '1003');
      const found = await scrapeAfter(service, 3);
      const counted = found.table('asked_total');
      const timed = found.table('asked_seconds_count');
      assert.deepEqual([Object.keys(counted).length, Object.keys(timed).length], [1001, 1001]);
      const some = ['q0 a', 'q999 a', 'q1000 a', 'other other'].map((labels) => counted[labels]);
      const others = ['0', '999', '1000', 'other'].map((label) => timed[label]);
      for (const counts of [some, others]) assert.deepEqual(counts, [3, 3, undefined, 8]);
      const told = service.logs.filter(({ message }) => message === FULL);
      const full = ['asked_total', 'asked_seconds'].map((instrument) => ({ instrument, series: 1000 }));
      assert.deepEqual(
        told,
        full.map((fields) => ({ level: 'warn', message: FULL, fields })),
      );
    });

    it('whose labels are short', async (t) => {
      const service = await start(t, { chatty });
      await ask(service, 'long');
      const counted = (await scrapeAfter(service, 1)).table('asked_total');
      assert.deepEqual(counted, { 'other other': 1, [`${'x'.repeat(200)} a`]: 1 });
    });

    it('but for those of built-in plugins, whose labels come from the config', async (t) => {
      const endpoints = Object.fromEntries(Array.from({ length: 1010 }, (_, i) => [`e${i}`, {}]));
      const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings: { metrics } }));
      for (const name of Object.keys(endpoints)) assert.equal((await service.post(`api/${name}`)).status, 200);
      const found = await scrapeAfter(service, 1010);
      assert.equal(Object.keys(found.happened('outcomes_total')).length, 1010);
    });
  });
});
