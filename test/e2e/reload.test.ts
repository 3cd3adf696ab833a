/** A reload takes the new config whole, or leaves everything as it was. */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginTools } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { idOf, postTo, reload, rewrite } from '../support/reload.ts';
import {
  type Block,
  oneApi,
  type RunningService,
  serviceFor,
  startTestService,
  TEST_ADDRESS,
  TEST_KEY,
} from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';
import { eventually, inTime } from '../support/wait.ts';

const IN_FORCE = 'error the config was not reloaded: the one before stays in force';
const ANEW = 'info plugins were set up anew; changes of their code need a restart';

/** A plugin whose config is a tag: it puts the tag into answers, and notes its start and stop. */
const tagged = `${pluginTools}
let made = 0;
export default {
  name: 'tagged',
  configSchema: { parse: (value) => value },
  setup(_, { tag, delay }) {
    const one = tag + ' ' + ++made;
    return {
      start: async () => { note('start', one); if (delay) await globalThis.testGate; },
      stop: () => note('stop', one),
      hooks: { onAfterApiCall: ({ response: { data } }) => ({ data: { ...data, tag } }) },
    };
  },
};
`;
const withTag = (tag: string, more: object = {}) => ({
  settings: { plugins: [{ source: './tagged.mjs', config: { tag, ...more } }] },
});
const WARNING = 'warn plugin "tagged" can change what gets signed (onAfterApiCall)';

/** Answers that the upstream owes. */
const held: ServerResponse[] = [];
const arrived = (count: number) => eventually(() => held.length === count, `${count} upstream calls`);
const release = () => {
  for (const res of held.splice(0)) res.setHeader('content-type', 'application/json').end('{"price": 5}');
};

const upstream = await upstreamFor(suite, { '/held': (_req, res) => void held.push(res) });
for (const from of ['a', 'b', 'c']) upstream.json(`/${from}`, { from });
const [A = '', B = '', C = ''] = ['/a', '/b', '/c'].map((path) => idOf(upstream.url, path));

beforeEach(() => notes.clear());

const TAGGED = { files: { 'tagged.mjs': tagged } };
const start = (t: TestContext, config: Block) => serviceFor(t, config, TAGGED);
const config = (endpoints: Record<string, Block>, more: Block = {}) => oneApi(upstream.url, endpoints, more);
const answered = async (response: Response) => (await verifyRaw(response, TEST_ADDRESS)).rawData;

describe('a reload of the config', () => {
  it('serves what is new, 404 for what is gone, and logs the difference', async (t) => {
    const service = await start(t, config({ a: {}, b: {} }));
    assert.deepEqual(service.ids, { 'api/a': A, 'api/b': B });
    const lines = ['info config reloaded', `info + api/c ${C}`, `info = api/b ${B}`, `info - api/a ${A}`];
    assert.deepEqual(await reload(service, config({ c: {}, b: {} })), { done: true, lines });
    assert.deepEqual(await answered(await postTo(service, C)), { from: 'c' });
    assert.deepEqual(await answered(await postTo(service, B)), { from: 'b' });
    await assertRefused(await postTo(service, A), 404, 'Endpoint not found');
  });

  it('of a file that has not changed says so', async (t) => {
    const service = await start(t, config({ a: {}, b: {} }));
    const lines = ['info config reloaded', `info = api/a ${A}`, `info = api/b ${B}`];
    assert.deepEqual(await reload(service), { done: true, lines });
  });

  it('takes what does not show in an ID: keys, and the variables as they are then', async (t) => {
    const keyed = (...keys: string[]) => config({ a: {} }, { api: { auth: { type: 'apiKey', keys } } });
    const service = await start(t, keyed('the first of the keys'));
    const ask = (key: string) => service.post('api/a', {}, { 'X-Api-Key': key });
    const { lines } = await reload(service, keyed(`\${KEY}`), { KEY: 'a key out of a variable' });
    assert.deepEqual(lines, ['info config reloaded', `info = api/a ${service.ids['api/a']}`]);
    await assertRefused(await ask('the first of the keys'), 401, 'Invalid API key');
    assert.deepEqual(await answered(await ask('a key out of a variable')), { from: 'a' });
    await reload(service, undefined, { KEY: 'another key out of it' });
    await assertRefused(await ask('a key out of a variable'), 401, 'Invalid API key');
    assert.deepEqual(await answered(await ask('another key out of it')), { from: 'a' });
  });

  it('repeats the warnings of the config, and says that code of plugins needs a restart', async (t) => {
    const service = await start(t, config({ a: {} }));
    const { lines } = await reload(service, config({ a: { mode: 'stream', cache: { maxAge: 1000 } } }, withTag('x')));
    assert.deepEqual(lines, [
      'warn apis[0].endpoints[0].cache: has no effect in stream mode',
      WARNING,
      'info config reloaded',
      `info = api/a ${A}`,
      ANEW,
    ]);
  });

  it('keeps connections', async (t) => {
    const service = await start(t, config({ a: {} }));
    const connection = openRaw(service.url);
    const health = `${requestHead('GET /health', { Connection: 'keep-alive' })}\r\n`;
    connection.write(health);
    await connection.until((text) => text.includes('"ok"'));
    await reload(service, config({ b: {} }));
    connection.write(`${requestHead(`POST /endpoints/${service.ids['api/a']}`)}\r\n`);
    assert.match(await connection.closed, /"ok".*404.*Endpoint not found/s);
  });
});

describe('what needs a restart', () => {
  it('port and host: a warning each, and nothing changes, however often', async (t) => {
    const service = await start(t, config({ a: {} }));
    const { url } = service;
    const same = ['info config reloaded', `info = api/a ${service.ids['api/a']}`];
    const port = 'warn server.port: stays 0 until the service is restarted';
    const host = 'warn server.host: stays 127.0.0.1 until the service is restarted';
    const moved = { server: { port: 4567, host: '127.0.0.2' } };
    assert.deepEqual((await reload(service, config({ a: {} }, moved))).lines, [...same, port, host]);
    assert.deepEqual((await reload(service)).lines, [...same, port, host]);
    assert.deepEqual((await reload(service, config({ a: {} }, { server: { port: 4568 } }))).lines, [...same, port]);
    assert.deepEqual((await reload(service, config({ a: {} }, { server: { host: '127.0.0.1' } }))).lines, same);
    assert.equal(service.url, url);
    assert.equal((await fetch(`${url}/health`)).status, 200);
  });

  it('the signing key', async (t) => {
    const service = await start(t, config({ a: {} }));
    const same = ['info config reloaded', `info = api/a ${service.ids['api/a']}`];
    const warned = [...same, 'warn the signing key stays the same until the service is restarted'];
    const lines = async (env: Record<string, string>) => (await reload(service, undefined, env)).lines;
    const phrase = 'test test test test test test test test test test test junk';
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}` }), warned);
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: 'rubbish' }), warned);
    assert.deepEqual(await lines({ SERVICE_MNEMONIC: phrase }), same, 'the same key in other words');
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: TEST_KEY.slice(2) }), same);
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: '' }), same, 'who has started the service may have kept it');
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a' });
    assert.ok(!JSON.stringify(service.logs).includes('1111111111'));
  });
});

describe('a config that cannot be used leaves everything as it was', () => {
  let service: RunningService;
  const definition = (name: string, behaviour: string) =>
    `${pluginTools} export default { name: '${name}', setup() { ${behaviour} } };`;
  const files = {
    'tagged.mjs': tagged,
    'setup.mjs': definition('setup', `throw new Error('no\\nway');`),
    'late.mjs': definition('late', `return { start() { throw new Error('not today'); }, stop: () => note('late') };`),
    'promise.mjs': definition('promise', `return Promise.resolve({});`),
    'route.mjs': definition(
      'route',
      `return { routes: [{ method: 'GET', path: '/health', admit: false, handle() {} }] };`,
    ),
    'unread.mjs': `throw new Error('unread');`,
  };

  before(async () => {
    service = await startTestService(config({ a: {} }, withTag('old')), { files });
  });
  after(() => service.stop());

  const plugin = (...sources: string[]) => {
    const { plugins } = withTag('new').settings;
    return { settings: { plugins: [...plugins, ...sources.map((name) => ({ source: `./${name}.mjs` }))] } };
  };
  const refused = async (...expected: (string | RegExp)[]) => {
    const { done, lines } = await reload(service);
    assert.equal(done, false);
    assert.equal(lines.length, expected.length + 1, lines.join('\n'));
    for (const [index, line] of [...expected, IN_FORCE].entries()) {
      if (typeof line === 'string') assert.equal(lines[index], line);
      else assert.match(String(lines[index]), line);
    }
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'old' });
    await assertRefused(await postTo(service, B), 404, 'Endpoint not found');
  };

  it('no YAML', async () => {
    await writeFile(join(service.folder, 'config.yaml'), 'version: "1.0"\napis: [');
    await refused(/^error (line|.*config\.yaml).*/);
  });

  it('an empty file', async () => {
    await writeFile(join(service.folder, 'config.yaml'), '');
    await refused(/^error /);
  });

  it('two wrong keys', async () => {
    await rewrite(service, config({ a: { encodign: {} }, b: { mode: 'synk' } }));
    const wrong = [
      /^error apis\[0\]\.endpoints\[0\]\.encodign: .*"encoding"/,
      /^error apis\[0\]\.endpoints\[1\]\.mode: /,
    ];
    await refused(...wrong);
  });

  it('a variable that is not set', async () => {
    await rewrite(service, config({ a: {} }, { api: { headers: { 'X-Key': `\${UNSET_KEY}` } } }));
    await refused('error apis[0].headers.X-Key: the variable UNSET_KEY is not set (api, line 8)');
  });

  it('the same endpoint twice', async () => {
    await rewrite(service, config({ a: {}, again: { path: '/a' } }));
    await refused(
      'error apis[0].endpoints[1]: "api/again" and "api/a" (apis[0].endpoints[0]) have the same endpoint ID: they are the same request. To have both, give one a parameter that the upstream ignores, such as {name: via, fixed: stream} (api/again, line 10)',
    );
  });

  const at = 'error settings.plugins[1] (line 7): plugin';
  /** What is wrong, the name of the plugin, and the lines of the log. */
  const faulty: [string, string, ...(string | RegExp)[]][] = [
    ['a plugin that is not there', 'nowhere', /^error settings\.plugins\[1\]\.source: plugin "\.\/nowhere\.mjs": /],
    [
      'a plugin that cannot be loaded',
      'unread',
      /^error settings\.plugins\[1\]\.source: plugin "\.\/unread\.mjs": cannot be loaded: .*unread/,
    ],
    ['a plugin that cannot be set up', 'setup', WARNING, `${at} "setup" of ./setup.mjs cannot be set up: no way`],
    [
      'a plugin whose setup is a promise',
      'promise',
      WARNING,
      `${at} "promise" of ./promise.mjs cannot be set up: "setup" must return {hooks, routes, operations, dependencies, observe, vary, start, stop} at once`,
    ],
    ['two plugins that serve one route', 'route', WARNING, 'error plugins "health" and "route" both serve GET /health'],
    ['a plugin that cannot start', 'late', WARNING, 'error plugin "late" cannot start: not today'],
  ];
  for (const [what, name, ...expected] of faulty) {
    it(what, async () => {
      await rewrite(service, config({ b: {} }, plugin(name)));
      await refused(...expected);
    });
  }

  it('stops again what was started beside one that could not start', async () => {
    await reload(service, config({ b: {} }, plugin('late')));
    const [started] = notes.of('start');
    assert.match(String(started), /^new \d+$/);
    assert.deepEqual([notes.of('stop'), notes.of('late').length], [[started], 1]);
  });

  it('a file that is gone', async () => {
    const file = join(service.folder, 'config.yaml');
    await rm(file);
    assert.deepEqual(await reload(service), { done: false, lines: [`error ${file}: file not found`, IN_FORCE] });
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'old' });
  });

  it('and does not stand in the way of a good one', async () => {
    const { done } = await reload(service, config({ b: {} }, withTag('new')));
    assert.equal(done, true);
    assert.deepEqual(await answered(await postTo(service, B)), { from: 'b', tag: 'new' });
  });
});

describe('requests in flight', () => {
  it('end by the config that they began with; its plugins stop after the last of them', async (t) => {
    const service = await start(t, config({ held: {}, a: {} }, withTag('old')));
    const answers = [service.post('api/held'), service.post('api/held')];
    await arrived(2);
    await reload(service, config({ a: {} }, withTag('new')));
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'new' });
    await assertRefused(await service.post('api/held'), 404, 'Endpoint not found');
    const [first] = held.splice(0, 1);
    first?.setHeader('content-type', 'application/json').end('{"price": 1}');
    const early = await Promise.race(answers);
    assert.equal(early.status, 200);
    assert.deepEqual(notes.of('stop'), [], 'one is still under way');
    release();
    const data = await Promise.all(answers.map(async (answer) => JSON.stringify(await answered(await answer))));
    assert.deepEqual(data.toSorted(), ['{"price":1,"tag":"old"}', '{"price":5,"tag":"old"}']);
    assert.deepEqual(await notes.until('stop'), [notes.of('start')[0]]);
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a', tag: 'new' });
  });

  it('hold up neither the reloads after it nor the plugins of those', async (t) => {
    const service = await start(t, config({ held: {}, a: {} }, withTag('one')));
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
    const service = await start(t, config({ held: {} }, withTag('old')));
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

describe('reloads one after the other, and at once', () => {
  it('ten, at once: one is done for all of them', async () => {
    const service = await startTestService(config({ a: {} }, withTag('x')), TAGGED);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => reload(service)));
    assert.deepEqual(new Set(outcomes.map(({ done }) => done)), new Set([true]));
    const started = notes.of('start');
    assert.equal(new Set(started).size, 2);
    assert.deepEqual(await notes.until('stop', 1), started.slice(0, 1));
    await service.stop();
    assert.deepEqual(notes.of('stop'), notes.of('start'));
  });

  it('ten, one by one: every set of plugins but the last is stopped, each once', async () => {
    const service = await startTestService(config({ a: {} }, withTag('x')), TAGGED);
    for (let count = 0; count < 10; count++) assert.equal((await reload(service)).done, true);
    const started = notes.of('start');
    assert.equal(new Set(started).size, 11);
    assert.deepEqual(await notes.until('stop', 10), started.slice(0, 10));
    await service.stop();
    assert.deepEqual(notes.of('stop'), notes.of('start'));
  });

  it('two, while one is under way: one more is done, with variables that are read after it', async (t) => {
    const service = await start(t, config({ a: {} }));
    const read: number[] = [];
    const events = new EventEmitter();
    const asked = (number: number, wait: Promise<unknown>) =>
      service.reload(async () => {
        read.push(number);
        events.emit('begun');
        await wait;
        return { SERVICE_PRIVATE_KEY: TEST_KEY };
      });
    const begun = once(events, 'begun');
    const outcomes = [asked(1, once(events, 'go on'))];
    await inTime(begun, 'the reload to begin');
    outcomes.push(asked(2, Promise.resolve()), asked(3, Promise.resolve()));
    assert.deepEqual(read, [1]);
    events.emit('go on');
    assert.deepEqual(await Promise.all(outcomes), [true, true, true]);
    assert.deepEqual(read, [1, 2]);
  });

  it('variables that cannot be read leave everything as it is', async (t) => {
    const service = await start(t, config({ a: {} }));
    const from = service.logs.length;
    const unreadable = 'secrets.env: cannot be read: it is a folder';
    assert.equal(await service.reload(() => Promise.reject(new Error(unreadable))), false);
    const lines = service.logs.slice(from).map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(lines, [`error ${unreadable}`, IN_FORCE]);
    assert.deepEqual(await answered(await postTo(service, String(service.ids['api/a']))), { from: 'a' });
  });

  it('while the service stops there is none', async () => {
    const service = await startTestService(config({ held: {} }));
    const answer = service.post('api/held');
    await arrived(1);
    const stopped = service.stop();
    assert.deepEqual(await reload(service), { done: false, lines: [] });
    release();
    assert.equal((await answer).status, 200);
    await stopped;
    assert.equal(await service.reload(() => ({ SERVICE_PRIVATE_KEY: TEST_KEY })), false);
  });

  it('one that is under way when the service stops is given up, and what it started is stopped', async () => {
    let open = () => {};
    Reflect.set(globalThis, 'testGate', new Promise<void>((resolve) => (open = resolve)));
    const service = await startTestService(config({ a: {} }, withTag('old')), TAGGED);
    const reloading = reload(service, config({ a: {} }, withTag('new', { delay: true })));
    await notes.until('start', 2);
    const stopped = service.stop();
    open();
    assert.equal((await reloading).done, false);
    await stopped;
    assert.deepEqual(notes.of('stop').toSorted(), notes.of('start').toSorted());
    assert.ok(!service.logs.some(({ level }) => level === 'error'));
  });
});

it('no request fails while reloads go on under load', async (t) => {
  const service = await start(t, config({ a: {} }, withTag('0')));
  upstream.on('/a', faults.slow(5, faults.json({ from: 'a' })));
  let sent = 0;
  let reloads = 0;
  const tags = new Set<string>();
  const client = async () => {
    while (sent < 200 || reloads < 5) {
      sent += 1;
      tags.add(String(Object(await answered(await service.post('api/a'))).tag));
    }
  };
  const clients = Array.from({ length: 20 }, client);
  while (reloads < 5) {
    const enough = sent + 25;
    await eventually(() => sent >= enough, 'more requests');
    assert.equal((await reload(service, config({ a: {} }, withTag(`${reloads + 1}`)))).done, true);
    reloads += 1;
  }
  await Promise.all(clients);
  assert.ok(tags.size >= 5, [...tags].join());
  assert.equal((await notes.until('stop', 5)).length, 5);
});
