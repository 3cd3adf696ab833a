/** The log of a request tells which plugin was slow, dropped it or failed. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { block } from '../support/fuzz/situation.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { acts, HOOKS, notes, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { encoding, oneApi, serviceFor } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

/** Milliseconds, with room for a busy machine. */
const BUDGET = 2000;
const SLOW = 1100;
const SHORT = 500;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const upstream = await upstreamFor(suite, { '/price': faults.json({ price: 7 }) });
const { files, plugins } = pluginFiles(
  { one: puppetFile('one'), two: puppetFile('two'), short: puppetFile('short') },
  { one: { timeout: BUDGET }, two: { timeout: BUDGET }, short: { timeout: SHORT } },
);
const endpoints = {
  p: { path: '/price', encoding },
  kept: { path: '/price?kept', encoding, cache: { maxAge: 1 } },
};
const config = oneApi(upstream.url, endpoints, { settings: { plugins } });
const service = await serviceFor(suite, config, { files });

beforeEach(() => tidy(service, upstream));

/** Lines about plugins, of one request, once its own line is out. */
async function ask(endpoint: keyof typeof endpoints = 'p') {
  service.logs.length = 0;
  const response = await service.post(`api/${endpoint}`);
  const requestId = response.headers.get('x-request-id');
  const mine = () => service.logs.filter(({ fields }) => fields.requestId === requestId);
  await eventually(() => mine().find(({ message }) => / \d{3} [\d.]+ms$/.test(message)), 'the line of the request');
  const lines = () => mine().filter(({ message }) => message.startsWith('plugin '));
  return { response, requestId, lines };
}

/** `12.34 of 400 ms`, and what each hook of the request has used. */
function read(fields: Readonly<Record<string, unknown>>) {
  const [, used, allowed] = /^([\d.]+) of (\d+) ms$/.exec(String(fields.budget)) ?? assert.fail(String(fields.budget));
  const texts = String(fields.used).split(', ');
  const hooks = texts.map((text) => /^(\w+) ([\d.]+)$/.exec(text) ?? assert.fail(text));
  const times = hooks.map(([, , time]) => Number(time));
  return { used: Number(used), allowed: Number(allowed), hooks: hooks.map(([, hook]) => hook), times };
}

/** Whether the parts make up the sum, but for rounding. */
function addsUp({ used, times }: ReturnType<typeof read>): boolean {
  return Math.abs(times.reduce((sum, time) => sum + time, 0) - used) < 0.1;
}

/** Asserts that a request has one line about plugins, a warning with this text, and reads it. */
function readOne(lines: ReturnType<Awaited<ReturnType<typeof ask>>['lines']>, message: string) {
  const [line, ...others] = lines;
  assert.deepEqual([line?.level, line?.message, others], ['warn', message, []]);
  return { fields: line?.fields ?? {}, ...read(line?.fields ?? {}) };
}

describe('a plugin that is slow, yet stays in its budget', () => {
  it('is named in one warning, with the hook and what the hooks before it used', async () => {
    acts.set('one onBeforeApiCall', () => block(20));
    acts.set('one onAfterApiCall', () => sleep(SLOW));
    acts.set('one onBeforeSign', () => block(1));
    const { response, requestId, lines } = await ask();
    assert.equal(response.status, 200);
    const { fields, ...spent } = readOne(lines(), 'plugin "one" is slow in onAfterApiCall');
    assert.deepEqual(Object.keys(fields), ['requestId', 'budget', 'used']);
    assert.equal(fields.requestId, requestId);
    assert.deepEqual([spent.allowed, spent.hooks], [BUDGET, ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall']]);
    assert.ok(spent.used >= SLOW + 15 && spent.used < BUDGET && addsUp(spent), JSON.stringify(spent));
    assert.ok(Number(spent.times[1]) >= 20 && Number(spent.times[2]) >= SLOW - 5, JSON.stringify(spent));
  });

  it('also when it works instead of waiting, and when several hooks add up', async () => {
    acts.set('one onHttpRequest', () => sleep(SLOW / 2 + 20));
    acts.set('one onBeforeSign', () => block(SLOW / 2 + 20));
    acts.set('two onHttpRequest', () => sleep(SLOW / 2 + 20));
    const { response, lines } = await ask();
    assert.equal(response.status, 200);
    readOne(lines(), 'plugin "one" is slow in onBeforeSign');
  });

  it('also where others may share what its later hooks are asked for', async () => {
    acts.set('one onHttpRequest', () => sleep(SLOW / 2 + 20));
    acts.set('one onBeforeSign', () => block(SLOW / 2 + 20));
    const { lines } = await ask('kept');
    const { hooks } = readOne(lines(), 'plugin "one" is slow in onBeforeSign');
    assert.deepEqual(hooks, ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign']);
  });

  it('an observer has a budget of its own', async () => {
    acts.set('short onResponseSent', () => {
      block(SHORT / 2 + 20);
      notes.add('sent');
    });
    const { lines } = await ask();
    await notes.until('sent');
    await eventually(() => lines()[0], 'the warning');
    assert.deepEqual(readOne(lines(), 'plugin "short" is slow in onResponseSent').hooks, ['onResponseSent']);
  });

  it('one that takes less than half is not worth a line', async () => {
    for (const hook of HOOKS) acts.set(`one ${hook}`, () => block(5));
    const { response, lines } = await ask();
    assert.equal(response.status, 200);
    assert.deepEqual(lines(), []);
  });
});

describe('a plugin whose hook is dropped', () => {
  for (const [what, act] of [
    ['throws', () => Promise.reject(new Error('no route'))],
    ['returns something of the wrong shape', () => ({ data: 'no hex' })],
  ] as const) {
    it(`because it ${what} is named, with the hook and what each hook has used`, async () => {
      acts.set('one onAfterApiCall', () => block(30));
      acts.set('one onBeforeSign', act);
      const { response, lines } = await ask();
      await assertRefused(response, 403, 'Request dropped by plugin "one"');
      const spent = readOne(lines(), 'plugin "one" failed in onBeforeSign');
      const hooks = ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall', 'onBeforeSign'];
      assert.deepEqual([spent.allowed, spent.hooks], [BUDGET, hooks]);
      assert.ok(addsUp(spent) && Number(spent.times[2]) >= 30, JSON.stringify(spent));
    });
  }

  it('does not make another plugin’s hooks show up', async () => {
    acts.set('one onBeforeSign', () => block(30));
    acts.set('two onHttpRequest', () => {
      throw new Error('no');
    });
    const { lines } = await ask();
    assert.deepEqual(readOne(lines(), 'plugin "two" failed in onHttpRequest').hooks, ['onHttpRequest']);
  });

  it('a deliberate rejection is no failure', async () => {
    acts.set('one onHttpRequest', () => ({ reject: true, status: 418, message: 'Tea' }));
    const { response, lines } = await ask();
    await assertRefused(response, 418, 'Tea');
    assert.deepEqual(lines(), []);
  });
});

describe('a plugin that is out of budget', () => {
  for (const [what, act] of [
    ['blocks', () => block(SHORT + 20)],
    ['never answers', () => new Promise(() => undefined)],
  ] as const) {
    it(`because its hook ${what} is named, with the hook and what each hook has used`, async () => {
      acts.set('short onBeforeApiCall', () => block(40));
      acts.set('short onAfterApiCall', act);
      const { response, lines } = await ask();
      await assertRefused(response, 403, 'Plugin "short" budget exhausted');
      const spent = readOne(lines(), 'plugin "short" is out of budget in onAfterApiCall');
      assert.deepEqual([spent.allowed, spent.hooks], [SHORT, ['onHttpRequest', 'onBeforeApiCall', 'onAfterApiCall']]);
      assert.ok(addsUp(spent) && Number(spent.times[1]) >= 40, JSON.stringify(spent));
    });
  }
});

describe('LOG_LEVEL=debug', () => {
  it('shows a line per stage and the timeline of each request; other levels do not', async (t) => {
    const { files, plugins } = pluginFiles({ one: puppetFile('one') });
    const api = { cache: { maxAge: 60_000 } };
    const config = oneApi(upstream.url, { p: { path: '/price', encoding } }, { api, settings: { plugins } });
    const tracing = await serviceFor(t, config, { files, env: { LOG_LEVEL: 'debug' } });
    const timelineOf = async (response: Response) => {
      const requestId = response.headers.get('x-request-id');
      const lines = () => tracing.logs.filter(({ fields }) => fields.requestId === requestId);
      await eventually(() => lines().find(({ message }) => message === 'timeline'), 'the timeline');
      const [line, ...others] = lines().filter(({ message }) => message === 'timeline');
      assert.deepEqual([line?.level, others], ['debug', []]);
      const texts = String(line?.fields.ms).split(', ');
      const stages = texts.map((text) => /^(\w+) \d+(\.\d+)?$/.exec(text)?.[1]);
      const traced = lines().flatMap(({ level, message, fields }) =>
        message.startsWith('stage ') ? [`${level} ${typeof fields.milliseconds} ${message.slice(6)}`] : [],
      );
      const shown = stages.map((stage) => `debug number ${stage}`);
      assert.deepEqual(traced.slice(0, stages.length), shown);
      return stages.join(' ');
    };
    const first = 'admit resolve parseBody onHttpRequest authenticate validate prepare';
    // A stage ends after those that run inside it.
    const whole = `${first} onBeforeApiCall callApi onAfterApiCall encode onBeforeSign sign answer present respond`;
    for (const stages of [whole, `${first} answer present respond`])
      assert.equal(await timelineOf(await tracing.post('api/p')), stages);
    assert.equal(await timelineOf(await fetch(`${tracing.url}/health`)), 'route respond');
    const unknown = await fetch(`${tracing.url}/endpoints/0x12`, { method: 'POST' });
    assert.equal(await timelineOf(unknown), 'admit resolve respond');
    await ask();
    assert.ok(!service.logs.some(({ message }) => /^(timeline|stage )/.test(message)));
  });
});
