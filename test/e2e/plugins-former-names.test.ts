/** Plugins may use the former names of members, and are told the new ones. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { configKey, Type } from '../../plugins-sdk/index.ts';
import { oneApi } from '../support/answers.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

// A plugin may use the names that members had before for one release, and is told the present ones.

const renamed = (owner: string, former: string, present: string) =>
  `"${former}" of ${owner} is called "${present}" now: rename it, since the next release will not know "${former}"`;

/** The deprecations of this process from now on. */
function deprecations(t: TestContext): string[] {
  const told: string[] = [];
  const tell = ({ name, message }: Error) => void (name === 'DeprecationWarning' && told.push(message));
  process.on('warning', tell);
  t.after(() => process.off('warning', tell));
  return told;
}

async function serve(t: TestContext, plugin: string, more: object = {}) {
  const upstream = await upstreamFor(t);
  upstream.json('/e', { a: 1 });
  const { files, plugins } = pluginFiles({ old: plugin });
  return await serviceFor(t, oneApi(upstream.url, { e: {} }, { settings: { plugins, ...more } }), {
    files,
  });
}

describe('a plugin with the former names of members', () => {
  it('reads the blocks of an endpoint', async (t) => {
    const told = deprecations(t);
    const plugin = `export default {
      name: 'old',
      setup: ({ endpoints: [{ own, shared }] }) => ({
        hooks: {
          respond: (headers, { resolved }) => ({ ...headers, 'x-names': resolved.own.name + own.name + ' of ' + shared.name }),
        },
      }),
    };`;
    const service = await serve(t, plugin);
    const response = await service.post('api/e');
    const { rawData } = (await response.json()) as { rawData: unknown };
    assert.deepEqual([response.status, rawData, response.headers.get('x-names')], [200, { a: 1 }, 'ee of api']);
    const owner = 'an endpoint';
    assert.deepEqual(told, [renamed(owner, 'own', 'block'), renamed(owner, 'shared', 'apiBlock')]);
  });

  it('uses the engine of the service', async (t) => {
    const told = deprecations(t);
    const folder = await mkdtemp(join(tmpdir(), 'sdp-former-'));
    t.after(() => rm(folder, { recursive: true }));
    const plugin = `export default {
      name: 'old',
      setup: ({ shared }) => {
        const area = shared.area('old');
        return { hooks: { respond: async (headers) => ({ ...headers, 'x-engine': shared.engine }) } };
      },
    };`;
    const service = await serve(t, plugin, { state: { type: 'file', path: join(folder, 'state') } });
    assert.equal((await service.post('api/e')).headers.get('x-engine'), 'file');
    assert.deepEqual(told, [renamed('the services', 'shared', 'stateEngine')]);
  });

  it('declares a key of both levels', async (t) => {
    const told = deprecations(t);
    const key = configKey('shared', 'note', Type.Optional(Type.String()));
    const value = (block: object, apiBlock: object) => key.of({ block: { ...block }, apiBlock: { ...apiBlock } });
    assert.deepEqual(
      [key.level, value({}, { note: 'a' }), value({ note: 'b' }, { note: 'a' })],
      ['apiOrEndpoint', 'a', 'b'],
    );
    await new Promise(setImmediate);
    assert.deepEqual(told, [
      renamed('config keys', 'shared', 'apiOrEndpoint').replace('"shared"', 'the level "shared"'),
    ]);
  });

  it('has an engine for state, and keeps something there', async (t) => {
    const told = deprecations(t);
    const plugin = `
      class Area {
        #kept = new Map();
        async get(key) { return this.#kept.get(key); }
        async swap(key, expected, next) {
          if (this.#kept.get(key) !== expected) return { value: this.#kept.get(key) };
          this.#kept.set(key, next);
        }
        async take() { return { granted: 1, retryAfter: 0, left: 0.5 }; }
      }
      const engine = () => ({ async start() {}, doubts: () => [], area: () => new Area(), async close() {} });
      export default {
        name: 'old',
        needsState: { modes: ['none'] },
        engines: { old: { schema: { type: 'object' }, processes: 'one', open: engine } },
        setup: ({ stateEngine, states }) => {
          const area = stateEngine.area('old');
          const steps = async () => [
            await area.swap('k', undefined, 'v'),
            await area.swap('k', undefined, 'w'),
            await area.get('k'),
            await area.take('k', { max: 1, window: 1 }),
          ];
          return { hooks: { respond: async (headers) => ({ ...headers, 'x-steps': JSON.stringify(await steps()) }) } };
        },
      };`;
    const service = await serve(t, plugin, { state: { type: 'old' } });
    const steps = JSON.parse((await service.post('api/e')).headers.get('x-steps') ?? '');
    assert.deepEqual(steps, [null, { value: 'v' }, 'v', { granted: 1, retryAfter: 0, left: 0.5 }]);
    const names = [['swap', 'compareAndSet'] as const, ['take', 'takeTokens'] as const];
    assert.deepEqual(told.sort(), [
      renamed('a plugin', 'needsState', 'requiresSharedState'),
      ...names.map(([former, present]) => renamed('a state area', former, present)),
    ]);
  });
});
