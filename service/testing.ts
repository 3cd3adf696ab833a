/**
 * A test harness for plugins. It puts one plugin into a real registry, behind the guard that it has in the service, and
 * runs it through one stage at a time. Budget, frozen context, checked results and the texts of refusals are therefore
 * those of production, and the plugin's observers run, too. Import it from `signed-data-proxy/plugins-sdk/testing`.
 *
 * @example
 * ```ts
 * const harness = await testPlugin(allowList({ allow: ['10.0.0.0/8'] }), { budget: 50 });
 * const outcome = await harness.run('onHttpRequest', { ip: '192.0.2.1' });
 * assert.deepEqual(outcome, { refused: { status: 403, message: 'Address not allowed' } });
 * ```
 *
 * @example Hooks that share one request, and with it one budget and one `requestId`:
 * ```ts
 * const request = harness.request({ headers: { 'x-tenant': 'a' }, parameters: { symbol: 'ETH' } });
 * assert.deepEqual(await request.run('onHttpRequest'), { passed: true });
 * assert.deepEqual(await request.run('onBeforeSign', { data: '0x01' }), { value: '0x02' });
 * ```
 *
 * @example A whole service with the plugin in it, without a port:
 * ```ts
 * const service = await harness.serve({ apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'eth', path: '/eth' }] }] });
 * assert.equal((await service.ask('prices/eth')).status, 200);
 * ```
 */
import type { Definition, SimplePlugin } from '../plugins-sdk/define.ts';
import type { HarnessOptions, PluginHarness } from '../plugins-sdk/testing/index.ts';
import type { Serve } from '../plugins-sdk/testing/plugin-harness.ts';
import { createHarness } from './testing/harness.ts';

export * from '../plugins-sdk/testing/index.ts';

/** Loads the service only for tests that serve. */
const serve: Serve = async (...args) => (await import('./testing/serve.ts')).serve(...args);

/**
 * Registers a plugin as the service does, and starts it.
 * @param plugin `{name, hooks}`, a factory's result, or a definition with `setup`.
 * @throws the errors that keep a service from starting: an unknown hook or member, a bad config, errors of `setup` or `start`.
 */
export function testPlugin(plugin: SimplePlugin | Definition, options: HarnessOptions = {}): Promise<PluginHarness> {
  return createHarness(plugin, options, serve);
}
