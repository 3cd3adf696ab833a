/** An isolated plugin does what one in the process does, and its processes end with it. */

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';
import { assertRefused } from '../support/http.ts';
import { isolatedFiles, recovered } from '../support/isolated.ts';
import { type Scrape, scrapeUntil } from '../support/metrics.ts';
import { notes, pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { asking } from '../support/served.ts';
import { encoding, oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

/** A service with one isolated plugin, whose source is given, and an upstream. */
async function startWith(t: TestContext, source: string, entry: object = {}, more: object = {}) {
  notes.clear();
  const upstream = await upstreamFor(t, { '/price': faults.json({ price: 7 }) });
  const { files, plugins } = pluginFiles({ p: source }, { p: { isolate: true, ...entry } });
  const endpoints = { price: { encoding, parameters: [{ name: 'q' }] }, raw: { path: '/price' } };
  const config = oneApi(upstream.url, endpoints, { settings: { plugins, ...more } });
  const service = await serviceFor(t, config, { files });
  const { encoded, raw, refused } = asking(service);
  return {
    ...{ service, stop: service.stop, config, upstream },
    price: (q = '', headers = {}) => service.post('api/price', { q }, headers),
    encoded: (q = '', headers = {}) => encoded('price', { q }, headers),
    raw: () => raw('raw'),
    refused: (status: number, error: string, headers = {}) => refused(status, error, 'price', {}, headers),
  };
}

const lives = (pid: unknown) => readdirSync('/proc').includes(String(pid));

const gone = (pids: readonly unknown[]) => eventually(() => !pids.some(lives), `the end of the processes ${pids}`);

describe('an isolated plugin', () => {
  it('does to requests what it does in the process of the service', async (t) => {
    const { encoded, refused } = await startWith(
      t,
      `import { Type } from 'signed-data-proxy/plugins-sdk';
      export const configSchema = Type.Object({ add: Type.Integer({ default: 3 }) });
      export default ({ add }) => ({ name: 'p', hooks: {
        onHttpRequest: ({ headers }) => ({ reject: headers['x-no'] !== undefined, status: 418, message: 'No' }),
        onAfterApiCall: ({ response }) => ({ data: { price: response.data.price + add } }),
        onBeforeSign: async ({ data }) => ({ data: data + '0f' }),
      } });`,
    );
    const { data } = await encoded();
    assert.equal(data, `0x${(10).toString(16).padStart(64, '0')}0f`);
    await refused(418, 'No', { 'x-no': '1' });
  });

  it('has none of the files open that the service has, such as that of its state', async (t) => {
    const state = { type: 'file', path: join(await folderWith(t), 'state') };
    const { refused } = await startWith(
      t,
      `import { fstatSync } from 'node:fs';
      const isFile = (fd) => { try { return fstatSync(fd).isFile(); } catch { return false; } };
      const message = () => 'files: ' + Array.from({ length: 200 }, (_, fd) => fd).filter(isFile);
      export default { name: 'p', hooks: { onHttpRequest: () => ({ reject: true, message: message() }) } };`,
      {},
      { state },
    );
    await refused(403, 'files: ');
  });

  it('has its config made by a parser in its own process, whatever that makes of it', async (t) => {
    const { raw } = await startWith(
      t,
      `export const configSchema = { parse: (value) => new Map(Object.entries(value)) };
      export default (config) => ({ name: 'p', hooks: { onAfterApiCall: () => ({ data: { got: config.get('list') } }) } });`,
      { config: { list: [1, { a: null }] } },
    );
    assert.deepEqual(await raw(), { got: [1, { a: null }] });
  });

  it('is told of the values of its keys at each endpoint', async (t) => {
    const { refused } = await startWith(
      t,
      `export const keys = { most: { type: 'integer', default: 5 } };
      export default { name: 'p', hooks: { onHttpRequest: (context) => ({
        reject: true, status: 499, message: JSON.stringify([context.keys, Object.isFrozen(context.keys), 'signal' in context]),
      }) } };`,
    );
    await refused(499, '[{"most":5},true,true]');
  });

  it('gets a large answer as it is, and may return one', async (t) => {
    const { raw, upstream } = await startWith(
      t,
      pluginFile(
        'p',
        `onAfterApiCall({ response: { data } }) { return { data: { ...data, first: data.list[0], own: typeof Object.getOwnPropertyDescriptor(arguments[0].response, 'data').get } }; }`,
      ),
    );
    const list = Array.from({ length: 20_000 }, (_, i) => `text ${i} ä`);
    upstream.json('/price', { list });
    assert.deepEqual(await raw(), { list, first: 'text 0 ä', own: 'function' });
  });

  it('writes into the log, with its name and bounded', async (t) => {
    const { service, encoded, stop } = await startWith(
      t,
      pluginFile(
        'p',
        `onError() { console.error('an error'); }, onHttpRequest() { console.log('x'.repeat(2000)); for (let i = 0; i < 2000; i++) console.log(i); }`,
      ),
    );
    const logged = (pattern: RegExp) => service.logs.find(({ message }) => pattern.test(message));
    await service.post('api/none');
    await eventually(() => logged(/^plugin "p": an error$/), 'its error');
    await encoded();
    await eventually(() => logged(/^plugin "p": x{1000}…$/), 'its long line');
    await stop();
    assert.ok(logged(/^plugin "p": [1-9]\d* more lines were dropped$/));
  });

  it('that cannot start stops the start', async (t) => {
    const upstream = await upstreamFor(t);
    let asked = 0;
    upstream.on('/count', (_, response) => {
      asked += 1;
      response.end(String(asked));
    });
    const source = `if (await (await fetch('${upstream.url}/count')).text() === '2') throw new Error('not twice');
      export default { name: 'p', hooks: {} };`;
    await assert.rejects(startWith(t, source), { message: 'plugin "p" cannot start: not twice' });
  });
});

describe('calls of an isolated plugin that does not answer', () => {
  /** Spins for one value, waits for others, and is done at once with the rest. */
  const spinning = pluginFile(
    'p',
    `async onHttpRequest({ parameters: { q } }) { note('began', q); if (q === 'spin') for (;;); if (q % 3 === 0) await sleep(1); }`,
  );

  it('that have not begun move to another process, and each begins exactly once', async (t) => {
    const { service, price } = await startWith(t, isolatedFiles()(spinning), { timeout: 1500 });
    for (let round = 0; round < 3; round += 1) {
      notes.clear();
      const values = Array.from({ length: 60 }, (_, i) => String(i));
      values.splice(7 + 17 * round, 0, 'spin');
      const answers = await Promise.all(values.map(async (q) => ({ q, response: await price(q) })));
      for (const { q, response } of answers) {
        if (q !== 'spin' && response.status === 200) continue;
        // Those that had begun to wait before the spin are lost with it: they began there.
        assert.ok(q === 'spin' || Number(q) % 3 === 0, q);
        await assertRefused(response, 403, 'Plugin "p" budget exhausted');
      }
      assert.deepEqual(notes.of('began').toSorted(), values.toSorted());
      await recovered(service);
    }
  });

  it('are counted, and so are its processes', async (t) => {
    const source = spinning.replace('note(', 'void (');
    const { service, price, encoded } = await startWith(t, source, { timeout: 300 }, { metrics: { port: 0 } });
    await encoded('1');
    await price('spin');
    const ready = () => service.logs.find(({ message }) => /another process is ready$/.test(message));
    await eventually(ready, 'another process');
    const size = (found: Scrape) => found.value('isolated_resident_memory_bytes') ?? 0;
    const scraped = await scrapeUntil(service, (found) => size(found) > 20 * 1024 * 1024);
    const counted = ['isolated_calls_total', 'isolated_restarts_total'].map((name) =>
      scraped.value(name, { plugin: 'p' }),
    );
    assert.deepEqual(counted, [2, 1]);
    const told = service.logs.filter(({ message }) => /process/.test(message));
    assert.deepEqual(
      told.map(({ level, message }) => `${level} ${message}`),
      [
        'info plugin "p" runs in a process of its own',
        'error plugin "p": its process has ended: it does not answer',
        'info plugin "p": another process is ready',
      ],
    );
  });
});

describe('the processes of an isolated plugin', () => {
  const telling = pluginFile(
    'p',
    `async onHttpRequest({ headers }) {
      note('pid', process.pid);
      if (headers['x-spin']) setTimeout(() => { note('spins'); for (;;); });
      if (headers['x-wait']) await sleep(500);
    }`,
    `note('loaded', process.pid);`,
  );

  it('end with the service, whatever they do', async (t) => {
    const { encoded, stop } = await startWith(t, isolatedFiles()(telling));
    await encoded('', { 'x-spin': '1' });
    await notes.until('spins');
    await stop();
    assert.equal(notes.of('loaded').length, 2);
    await gone(notes.of('loaded'));
  });

  it('are others after a reload, and those before it end what they have begun', async (t) => {
    const { service, encoded, config } = await startWith(t, isolatedFiles()(telling), { timeout: 60_000 });
    const waiting = encoded('', { 'x-wait': '1' });
    await notes.until('pid');
    const { done, lines } = await reload(service, config);
    assert.equal(done, true);
    // Their code is read anew.
    assert.ok(!lines.includes('info plugins were set up anew; changes of their code need a restart'), lines.join('\n'));
    await encoded();
    await waiting;
    const [before, after] = notes.of('pid');
    assert.notEqual(after, before);
    await gone([before]);
    assert.ok(lives(after));
  });
});
