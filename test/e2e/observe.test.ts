/** Observers of a full plugin are told what becomes of each request. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, notes, pluginTools, puppetFile } from '../support/plugin-files.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { encoding } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

/** Notes every event; `throws` makes it throw instead. */
const watcher = (name: string, throws = false) => `${pluginTools}
const tell = (topic, event) => { if (${throws}) throw new Error('watcher ${name}'); note('${name} ' + topic, event); };
export default {
  name: '${name}',
  setup: () => ({
    observe: {
      stage: ({ exchange: { requestId }, stage, milliseconds, outcome }) =>
        tell('stage', { requestId, stage, outcome, timed: typeof milliseconds }),
      call: ({ exchange: { requestId }, plugin, stage, milliseconds, charge, outcome }) =>
        tell('call', { requestId, plugin, stage, outcome, used: milliseconds > 0, remaining: charge?.remaining }),
      response: ({ requestId, resolved, route }, status) =>
        tell('response', { requestId, route, endpoint: resolved?.name, status }),
    },
  }),
};
`;

const price = faults.json({ price: 7 });
const endpoints = { price: { encoding }, broken: { encoding }, hang: { encoding } };
const { upstream, service } = await served(suite, endpoints, {
  answers: { '/price': price, '/broken': faults.serverError(), '/hang': faults.hang() },
  sources: {
    loud: watcher('loud', true),
    watch: watcher('watch'),
    puppet: puppetFile('puppet', ['onHttpRequest', 'onBeforeSign', 'onResponseSent', 'onError']),
  },
});
/** Another one, with one endpoint and plugins of these sources. */
const withPlugins = async (t: TestContext, sources: Readonly<Record<string, string>>, endpoint = {}) =>
  (await served(t, { price: endpoint }, { answers: { '/price': price }, sources })).service;

beforeEach(() => tidy(service, upstream));

const texts = (topic: string, ...members: string[]) =>
  notes.of(`watch ${topic}`).map((event) => members.map((member) => Reflect.get(Object(event), member)).join(' '));
const requestIds = () => new Set(notes.all.map(({ value }) => Object(value).requestId));

describe('what observers are told', () => {
  it('of a request that is answered', async () => {
    acts.set('puppet onHttpRequest', () => undefined);
    acts.set('puppet onBeforeSign', ({ data }) => ({ data }));
    const response = await service.post('api/price');
    await response.text();
    const { requestId } = Object((await notes.until('watch response'))[0]);
    await eventually(() => texts('call', 'stage').at(-1) === 'onResponseSent', 'the last call');
    assert.equal(requestId, response.headers.get('x-request-id'));
    assert.deepEqual(requestIds(), new Set([requestId]));
    const stages = [
      'resolve',
      'parseBody',
      'onHttpRequest',
      'authenticate',
      'validate',
      'prepare',
      'callApi',
      'encode',
    ];
    const silent = ['admit', 'onHttpRequest', 'onResponseSent'];
    assert.deepEqual(
      texts('stage', 'stage', 'outcome', 'timed'),
      ['admit', ...stages, 'onBeforeSign', 'sign', 'present', 'respond', 'onResponseSent'].map(
        (stage) => `${stage} ${silent.includes(stage) ? 'silent' : 'answered'} number`,
      ),
    );
    assert.deepEqual(texts('call', 'plugin', 'stage', 'outcome', 'used'), [
      'puppet onHttpRequest done true',
      'puppet onBeforeSign done true',
      'puppet onResponseSent done true',
    ]);
    assert.deepEqual(texts('response', 'route', 'endpoint', 'status'), ['/endpoints/:endpointId price 200']);
  });

  it('of one that a stage refuses', async () => {
    await assertRefused(await service.post('api/broken'), 502, 'API call failed');
    await notes.until('watch response');
    await eventually(() => texts('call', 'stage').at(-1) === 'onError', 'the last call');
    assert.deepEqual(texts('stage', 'stage', 'outcome').slice(5), [
      'validate answered',
      'prepare answered',
      'callApi refused',
      'present refused',
      'respond answered',
      'onError silent',
    ]);
    assert.deepEqual(texts('response', 'endpoint', 'status'), ['broken 502']);
  });

  it('of a hook that is dropped, and of one that fails after the answer', async () => {
    acts.set('puppet onBeforeSign', () => Promise.reject(new Error('no')));
    acts.set('puppet onError', () => Promise.reject(new Error('no')));
    await assertRefused(await service.post('api/price'), 403, 'Request dropped by plugin "puppet"');
    await eventually(() => texts('call', 'stage').at(-1) === 'onError', 'the last call');
    assert.deepEqual(texts('call', 'plugin', 'stage', 'outcome'), [
      'puppet onHttpRequest done',
      'puppet onBeforeSign failed',
      'puppet onError failed',
    ]);
    assert.deepEqual(texts('response', 'endpoint', 'status'), ['price 403']);
  });

  it('of a budget that ended: it is spent, and not twice', async () => {
    acts.set('puppet onBeforeSign', () => new Promise(() => undefined));
    await assertRefused(await service.post('api/price'), 403, 'Plugin "puppet" budget exhausted');
    await notes.until('watch response');
    const spent = notes.of('watch call').find((event) => Object(event).outcome === 'exhausted');
    const { stage, remaining } = Object(spent);
    assert.equal(stage, 'onBeforeSign');
    assert.ok(remaining <= 0 && remaining > -900, `${remaining}`);
  });

  it('of a client that leaves: 499', async () => {
    const connection = openRaw(service.url);
    const length = { 'Content-Type': 'application/json', 'Content-Length': '2' };
    const head = requestHead(`POST /endpoints/${service.ids['api/hang']}`, length);
    connection.write(`${head}\r\n{}`);
    await upstream.untilRequested('/hang');
    connection.destroy();
    await notes.until('watch response');
    assert.deepEqual(texts('response', 'endpoint', 'status'), ['hang 499']);
    await upstream.untilAborted('/hang');
  });

  it('of requests to other routes, and to none', async () => {
    for (const path of ['/health?a=1', '/requests/secret', '/nowhere']) await (await fetch(service.url + path)).text();
    await notes.until('watch response', 3);
    const routes = ['/health  200', '/requests/:requestId  404', '(no route)  404'];
    assert.deepEqual(texts('response', 'route', 'endpoint', 'status'), routes);
  });
});

it('an observer that throws harms nobody, and is in the log', async () => {
  const response = await service.post('api/price');
  assert.equal(response.status, 200);
  await response.text();
  await notes.until('watch response');
  assert.deepEqual(notes.of('loud stage'), []);
  const lines = service.logs.filter(({ level }) => level === 'error');
  assert.ok(lines.length >= 10, `${lines.length}`);
  for (const { message, fields } of lines) {
    assert.equal(message, 'plugin "loud" failed in observe');
    assert.match(String(fields.error), /^Error: watcher loud/);
  }
});

describe('an observer that is asynchronous', () => {
  it('harms nobody when it rejects, and is in the log by its name', async (t) => {
    const unhandled: unknown[] = [];
    const listen = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listen);
    t.after(() => process.off('unhandledRejection', listen));
    const late = `${pluginTools}
      const tell = async (topic) => { await sleep(1); note('late ' + topic); throw new Error('late ' + topic); };
      export default { name: 'late', setup: () => ({
        observe: { stage: () => tell('stage'), call: () => tell('call'), response: () => tell('response') },
      }) };`;
    const other = await withPlugins(t, { late, puppet: puppetFile('puppet', ['onHttpRequest']) });
    const response = await other.post('api/price');
    assert.equal(response.status, 200);
    await response.text();
    for (const topic of ['stage', 'call', 'response']) await notes.until(`late ${topic}`);
    const lines = () => other.logs.filter(({ level }) => level === 'error');
    const said = () => new Set(lines().map(({ fields }) => String(fields.error).split('\n')[0]));
    await eventually(() => said().size === 3, 'all three in the log');
    assert.deepEqual([...said()].sort(), ['Error: late call', 'Error: late response', 'Error: late stage']);
    assert.deepEqual([...new Set(lines().map(({ message }) => message))], ['plugin "late" failed in observe']);
    assert.deepEqual(unhandled, []);
  });
});

describe('routes of plugins', () => {
  const SDK = new URL('../../plugins-sdk/index.ts', import.meta.url).href;
  const server = (name: string, budget: string) => `import { Refusal } from '${SDK}';
    const handlers = {
      fine: () => ({ status: 200, body: '1' }),
      refused: () => { throw new Refusal(418, 'Teapot'); },
      failed: async () => { throw new Error('no'); },
      odd: () => ({ status: 1 }),
      hanging: () => new Promise(() => undefined),
    };
    const routes = Object.entries(handlers).map(([word, handle]) => ({ method: 'GET', path: '/${name}/' + word, admit: true, handle }));
    export default { name: '${name}', budget: ${budget}, setup: () => ({ routes }) };`;

  it('are told as calls, also those of a plugin without a budget, which has one for routes', async (t) => {
    const sources = { watch: watcher('watch'), short: server('short', '50'), free: server('free', '"none"') };
    const other = await withPlugins(t, sources);
    const paths = ['fine', 'refused', 'failed', 'odd'].flatMap((word) => [`short/${word}`, `free/${word}`]);
    const statuses = [];
    for (const path of [...paths, 'short/hanging']) statuses.push((await fetch(`${other.url}/${path}`)).status);
    assert.deepEqual(statuses, [200, 200, 418, 418, 500, 500, 500, 500, 403]);
    await notes.until('watch response', statuses.length);
    assert.deepEqual(texts('call', 'plugin', 'stage', 'outcome', 'used'), [
      ...['short route done true', 'free route done true', 'short route done true', 'free route done true'],
      ...['short route failed true', 'free route failed true', 'short route failed true', 'free route failed true'],
      'short route exhausted true',
    ]);
  });
});

it('observers do not get the id of an async record, with which anybody could read it', async (t) => {
  const spy = `${pluginTools}
    import { inspect } from 'node:util';
    const namesOf = (object) => Object.keys(Object.getOwnPropertyDescriptors(object));
    const members = (exchange) => [...namesOf(exchange), ...namesOf(Object.getPrototypeOf(exchange))];
    const read = (exchange, name) => { try { return exchange[name]; } catch { return undefined; } };
    const all = (exchange) => Object.fromEntries(members(exchange).map((name) => [name, read(exchange, name)]));
    const tell = (exchange) => note('spy ' + exchange.route, JSON.stringify(all(exchange)) + inspect(exchange, { depth: 9, getters: true }));
    export default { name: 'spy', setup: () => ({
      observe: { stage: ({ exchange }) => tell(exchange), call: ({ exchange }) => tell(exchange), response: tell },
    }) };`;
  const other = await withPlugins(t, { spy }, { mode: 'async' });
  const submission = await submitted(await other.post('api/price'));
  assert.equal((await finished(other, submission)).status, 'complete');
  const seen = await notes.until('spy /requests/:requestId', 3);
  await notes.until('spy /endpoints/:endpointId', 3);
  assert.ok(seen.every((text) => String(text).includes('"route":"/requests/:requestId"')));
  assert.ok(!JSON.stringify(notes.all).includes(submission.requestId.slice(2)), 'the id of the record');
});
