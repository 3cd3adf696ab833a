/** Engines of operators keep the state, and one that is away is named by /ready. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import { scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { type Block, oneApi, serviceFor, startTestService } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { RECIPIENT, termsOn } from '../support/x402.ts';

/** What the engines of plugin files in this process do. */
const engine = {
  fault: '',
  doubts: [] as string[],
  opened: [] as Block[],
  closed: 0,
  areas: new Map<string, MemoryArea>(),
};
Reflect.set(globalThis, 'testEngine', {
  engine,
  area: (name: string) => {
    const area = engine.areas.get(name) ?? new MemoryArea();
    engine.areas.set(name, area);
    const checked = <A extends unknown[], R>(ask: (...args: A) => Promise<R>) => {
      return async (...args: A) => {
        if (engine.fault !== '') throw new Error(engine.fault);
        return ask(...args);
      };
    };
    return {
      get: checked(area.get.bind(area)),
      compareAndSet: checked(area.compareAndSet.bind(area)),
      takeTokens: checked(area.takeTokens.bind(area)),
    };
  },
});

const plugin = `
  const { engine, area } = globalThis.testEngine;
  const schema = { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] };
  const open = (config, services) => {
    engine.opened.push({ ...config, path: services.path('x'), now: typeof services.now() });
    return {
      start: async () => { if (engine.fault !== '') throw new Error(engine.fault); },
      doubts: () => engine.doubts,
      area,
      close: async () => { engine.closed += 1; },
    };
  };
  export default { name: 'own-engine', engines: { own: { schema, open } }, setup: () => ({}) };`;
const files = { 'own-engine.mjs': plugin };
const withState = (state: unknown, more: Block = {}): Block => ({
  settings: { state, plugins: [{ source: './own-engine.mjs' }], ...more },
});
const NOWHERE = 'http://127.0.0.1:9';
const x402 = termsOn({ chainId: 1, url: NOWHERE }, 1n);
const USDC = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
const OWN = { type: 'own', place: 'here' };
/** A config with one endpoint. */
const one = (state: unknown, endpoint: Block = {}, more: Block = {}) =>
  oneApi(NOWHERE, { e: endpoint }, withState(state, more));

/** The engine as it was made. */
function afresh(t: TestContext): void {
  Object.assign(engine, { fault: '', doubts: [], opened: [], closed: 0, areas: new Map() });
  t.after(() => {
    engine.fault = '';
  });
}

describe('the engine of an operator’s plugin', () => {
  it('is opened once with its config, kept over reloads, and closed in the end', async (t) => {
    afresh(t);
    const config = one(OWN);
    const service = await startTestService(config, { files });
    assert.deepEqual(engine.opened, [{ place: 'here', path: `${service.folder}/x`, now: 'number' }]);
    assert.equal((await reload(service, config)).done, true);
    const moved = await reload(service, one({ type: 'own', place: 'there' }));
    assert.ok(moved.lines.includes('warn settings.state: stays as it is until the service is restarted'));
    const gone = await reload(service, one('memory'));
    assert.ok(gone.lines.includes('warn settings.state: stays as it is until the service is restarted'));
    assert.deepEqual([engine.opened.length, engine.closed], [1, 0]);
    await service.stop();
    assert.equal(engine.closed, 1);
  });

  it('stops the start when it cannot start, and is closed', async (t) => {
    afresh(t);
    engine.fault = 'settings.state: nobody is there';
    await assert.rejects(startTestService(one(OWN), { files }), new Error('settings.state: nobody is there'));
    assert.equal(engine.closed, 1);
  });

  it('stops the start when it may lose payments, and no other start', async (t) => {
    afresh(t);
    engine.doubts = ['set this', 'and that'];
    const paid = one(OWN, { auth: x402 });
    await assert.rejects(startTestService(paid, { files }), /plugin "auth-x402" cannot start: set this; and that$/);
    const extra = { name: 'USD Coin', version: '2' };
    const accepts = [{ network: 'eip155:1', asset: USDC, amount: '1', payTo: RECIPIENT, extra }];
    const bought = one(OWN, { auth: { type: 'x402-exact', facilitator: NOWHERE, accepts } });
    await assert.rejects(
      startTestService(bought, { files }),
      /plugin "auth-x402-exact" cannot start: set this; and that$/,
    );
    const service = await startTestService(one(OWN), { files });
    const said = service.logs.filter(({ message }) => engine.doubts.includes(message));
    const lines = said.map(({ level, message }) => `${level} ${message}`);
    assert.deepEqual(lines, ['warn set this', 'warn and that']);
    await service.stop();
  });

  it('is named by /ready while it is away: 200 as long as one endpoint does without it', async (t) => {
    afresh(t);
    const state = withState(OWN);
    const free = oneApi(NOWHERE, { paid: { auth: x402 }, any: { auth: [x402, { type: 'free' }] } }, state);
    const paid = oneApi(NOWHERE, { paid: { auth: x402 }, later: { mode: 'async' } }, state);
    for (const [config, status, body] of [
      [free, 200, { status: 'ready', away: ['own'] }],
      [paid, 503, { status: 'away', away: ['own'] }],
    ] as const) {
      const service = await serviceFor(t, config, { files });
      const ready = async () => {
        const response = await fetch(`${service.url}/ready`);
        return [response.status, await response.json()];
      };
      assert.deepEqual(await ready(), [200, { status: 'ready' }]);
      engine.fault = 'gone';
      await retried(async () => assert.deepEqual(await ready(), [status, body]));
      engine.fault = '';
      await retried(async () => assert.deepEqual(await ready(), [200, { status: 'ready' }]));
      const changes = service.logs.filter(({ message }) => message.startsWith('the engine of settings.state'));
      const told = changes.map(({ level, message, fields }) => [level, message, fields]);
      assert.deepEqual(told, [
        ['error', 'the engine of settings.state is away', { engine: 'own', error: 'gone' }],
        ['info', 'the engine of settings.state is back', { engine: 'own' }],
      ]);
    }
  });

  it('is in the OpenAPI document: a poll may be answered with 503', async (t) => {
    afresh(t);
    for (const [state, statuses] of [
      ['memory', ['200', '404', '429', '500']],
      [OWN, ['200', '404', '429', '500', '503']],
    ] as const) {
      const config = one(state, { mode: 'async' }, { openapi: true });
      const service = await serviceFor(t, config, { files });
      const { paths } = Object(await (await fetch(`${service.url}/openapi.json`)).json());
      assert.deepEqual(Object.keys(paths['/requests/{requestId}'].get.responses), statuses);
    }
  });

  it('is measured', async (t) => {
    afresh(t);
    const upstream = await upstreamFor(t);
    upstream.json('/e', { ok: true });
    const state = withState(OWN, { metrics: { port: 0 } });
    const config = oneApi(upstream.url, { e: { cache: { maxAge: 60_000 } } }, state);
    const service = await serviceFor(t, config, { files });
    assert.equal((await scrape(service)).value('state_available'), 1);
    await (await service.post('api/e')).text();
    const commands = async () => (await scrape(service)).table('state_commands_total');
    await retried(async () => assert.ok(Number((await commands())['get done']) >= 1));
    engine.fault = 'gone';
    await retried(async () => {
      const { 'swap failed': failed = 0 } = await commands();
      assert.ok(failed >= 5);
      assert.equal((await scrape(service)).value('state_available'), 0);
    });
  });
});

describe('settings.state in the config', () => {
  for (const [state, message] of [
    ['disk', 'settings.state: expected "memory" or a mapping, found a string'],
    [{ type: 'own' }, 'settings.state.place: required key is missing'],
    [{ type: 'own', place: 'x', plaice: 'y' }, 'settings.state.plaice: unknown key, did you mean "place"?'],
    [{ type: 'etcd' }, 'settings.state.type: expected one of "file", "redis", "own"'],
    [{}, 'settings.state.type: required key is missing, expected one of "file", "redis", "own"'],
    [null, 'settings.state: expected "memory" or a mapping, found nothing'],
  ] as const)
    it(`${JSON.stringify(state)} is refused`, async (t) => {
      afresh(t);
      await assert.rejects(startTestService(one(state), { files }), { message });
      assert.deepEqual(engine.opened, []);
    });

  it('an engine of a built-in that is left out is unknown', async (t) => {
    afresh(t);
    const plugins = [{ source: 'builtin:state-redis', enabled: false }];
    const config = oneApi(NOWHERE, { e: {} }, { settings: { state: { type: 'redis', url: 'redis://x' }, plugins } });
    await assert.rejects(startTestService(config), /settings\.state/);
  });

  it('two plugins cannot have engines of one name', async (t) => {
    afresh(t);
    const twice = plugin.replaceAll('own-engine', 'second');
    const plugins = [{ source: './own-engine.mjs' }, { source: './second.mjs' }];
    const config = oneApi(NOWHERE, { e: {} }, { settings: { plugins } });
    const starting = startTestService(config, { files: { ...files, 'second.mjs': twice } });
    const why = /plugin "second" cannot own the state engine "own": it belongs to plugin "own-engine"/;
    await assert.rejects(starting, why);
  });

  it('an engine that is none is refused before anything starts', async (t) => {
    afresh(t);
    const why = /the default export: engines\.own\.timeout: (?:expected|must)/;
    for (const odd of ["timeout: 'none'", 'timeout: 0']) {
      const oddFiles = { 'own-engine.mjs': plugin.replace('schema, open', `schema, ${odd}, open`) };
      await assert.rejects(startTestService(one('memory'), { files: oddFiles }), why, odd);
    }
  });
});
