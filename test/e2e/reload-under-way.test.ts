/** What is under way at a reload ends by the config that it began with. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { notes, pluginTools } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { answered, reload, reloadable, startTagged, withTag } from '../support/reload.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const { upstream, config, held, arrived, release } = await reloadable();

beforeEach(() => notes.clear());

describe('requests in flight', () => {
  it('end by the config that they began with; its plugins stop after the last of them', async (t) => {
    const service = await startTagged(t, config({ held: {}, a: {} }, withTag('old')));
    const answers = [service.post('api/held'), service.post('api/held')];
    await arrived(2);
    await reload(service, config({ a: {} }, withTag('new')));
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'new' });
    await assertRefused(await service.post('api/held'), 404, 'Endpoint not found');
    const [first] = held.splice(0, 1);
    first?.setHeader('content-type', 'application/json').end('{"price": 1}');
    assert.equal((await Promise.race(answers)).status, 200);
    assert.deepEqual(notes.of('stop'), [], 'one is still under way');
    release();
    const data = await Promise.all(answers.map(async (answer) => JSON.stringify(await answered(await answer))));
    assert.deepEqual(data.toSorted(), ['{"price":1,"tag":"old"}', '{"price":5,"tag":"old"}']);
    assert.deepEqual(await notes.until('stop'), [notes.of('start')[0]]);
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'new' });
  });

  it('hold up neither the reloads after it nor the plugins of those', async (t) => {
    const service = await startTagged(t, config({ held: {}, a: {} }, withTag('one')));
    const answer = service.post('api/held');
    await arrived(1);
    for (const tag of ['two', 'three', 'four']) await reload(service, config({ a: {} }, withTag(tag)));
    const [one, two, three] = notes.of('start');
    assert.deepEqual(await notes.until('stop', 2), [two, three]);
    release();
    assert.deepEqual(await answered(await answer), { price: 5, tag: 'one' });
    assert.deepEqual(await notes.until('stop', 3), [two, three, one]);
  });

  it('whose clients have left hold up nothing, even behind another on one connection', async (t) => {
    const service = await startTagged(t, config({ held: {} }, withTag('old')));
    const connection = openRaw(service.url);
    const length = { Connection: 'keep-alive', 'Content-Type': 'application/json', 'Content-Length': '2' };
    const post = `${requestHead(`POST /endpoints/${service.ids['api/held']}`, length)}\r\n{}`;
    connection.write(post + post);
    await arrived(2);
    await reload(service, config({ a: {} }, withTag('new')));
    connection.destroy();
    assert.deepEqual(await notes.until('stop'), [notes.of('start')[0]]);
    // Both upstream calls are given up.
    await upstream.untilIdle();
    held.length = 0;
    const left = () => service.logs.filter(({ message }) => message.includes(' 499 ')).length === 2 || undefined;
    assert.ok(await eventually(left, 'a line for each'));
  });

  it('go on at a route after their clients have left: plugins stop after them', async (t) => {
    const slow = `${pluginTools}
export default {
  name: 'slow',
  setup: () => ({
    routes: [{ method: 'GET', path: '/slow', admit: false, async handle() {
      note('asked');
      while (globalThis.testIsHeld) await sleep(5);
      note('ends', 'handler');
      return { status: 200, body: '{}' };
    } }],
    stop: () => note('ends', 'plugin'),
  }),
};
`;
    Reflect.set(globalThis, 'testIsHeld', true);
    const first = config({ a: {} }, { settings: { plugins: [{ source: './slow.mjs' }] } });
    const service = await serviceFor(t, first, { files: { 'slow.mjs': slow } });
    const connection = openRaw(service.url);
    connection.write(`${requestHead('GET /slow')}\r\n`);
    await notes.until('asked');
    connection.destroy();
    const left = () => service.logs.some(({ message }) => message.includes(' 499 ')) || undefined;
    await eventually(left, 'the line of the request');
    await reload(service, config({ a: {} }));
    await answered(await service.post('api/a'));
    assert.deepEqual(notes.of('ends'), []);
    Reflect.set(globalThis, 'testIsHeld', false);
    assert.deepEqual(await notes.until('ends', 2), ['handler', 'plugin']);
  });
});

describe('state that has an end', () => {
  const sdk = new URL('../../plugins-sdk/state.ts', import.meta.url).href;
  const keeping = `${pluginTools}
import { StateKey } from '${sdk}';
const key = new StateKey('pool');
export default {
  name: 'keeping',
  configSchema: { parse: (value) => value },
  setup({ states }, { pool, fails }) {
    states.keep(key, pool, () => ({ close: () => note('closed', pool) }));
    return { start() { if (fails) throw new Error('no'); }, stop: () => note('stopped', pool) };
  },
};
`;
  const withPool = (pool: string, more: object = {}) => ({
    settings: { plugins: [{ source: './keeping.mjs', config: { pool, ...more } }] },
  });

  it('ends after the last request that may use it, once', async () => {
    const first = config({ held: {}, a: {} }, withPool('one'));
    const service = await startTestService(first, { files: { 'keeping.mjs': keeping } });
    const answer = service.post('api/held');
    await arrived(1);
    await reload(service, first);
    await reload(service, config({ a: {} }, withPool('two')));
    assert.deepEqual(await notes.until('stopped'), ['one']);
    assert.equal((await reload(service, config({ a: {} }, withPool('three', { fails: true })))).done, false);
    assert.deepEqual(notes.of('closed'), ['three'], 'nobody but the config that failed has used it');
    release();
    assert.equal((await answer).status, 200);
    assert.deepEqual(await notes.until('closed', 2), ['three', 'one']);
    await reload(service, config({ a: {} }, withPool('two')));
    await service.stop();
    assert.deepEqual(notes.of('closed'), ['three', 'one', 'two']);
  });

  it('ends with a config in which another plugin cannot be set up', async (t) => {
    const bad = `export default { name: 'bad', setup() { throw new Error('no'); } };`;
    const files = { 'keeping.mjs': keeping, 'bad.mjs': bad };
    const service = await serviceFor(t, config({ a: {} }, withPool('one')), { files });
    const { settings } = withPool('two');
    const next = { settings: { plugins: [...settings.plugins, { source: './bad.mjs' }] } };
    assert.equal((await reload(service, config({ a: {} }, next))).done, false);
    assert.deepEqual(await notes.until('closed'), ['two']);
  });
});

it('no request fails while reloads go on under load', async (t) => {
  const service = await startTagged(t, config({ a: {} }, withTag('0')));
  upstream.on('/a', faults.slow(5, faults.json({ from: 'a' })));
  let sent = 0;
  let reloads = 0;
  const tags = new Set<string>();
  const client = async () => {
    while (reloads < 5) {
      sent += 1;
      tags.add(String(Object(await answered(await service.post('api/a'))).tag));
    }
  };
  const clients = Array.from({ length: 10 }, client);
  while (reloads < 5) {
    // More than there are clients, so that some are answered by the new config.
    const enough = sent + 12;
    await eventually(() => sent >= enough, 'more requests');
    assert.equal((await reload(service, config({ a: {} }, withTag(`${reloads + 1}`)))).done, true);
    reloads += 1;
  }
  await Promise.all(clients);
  assert.ok(tags.size >= 5, [...tags].join());
  assert.equal((await notes.until('stop', 5)).length, 5);
});
