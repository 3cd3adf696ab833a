/**
 * A test harness for plugins. It puts one plugin into a real registry, behind the guard that it has in the service. It
 * runs it through one stage at a time. Budget, frozen context, checked results and the texts of refusals are therefore
 * those of production, and the plugin's observers are told of what is run. Import it from `signed-data-proxy/plugins-sdk/testing`.
 *
 * @example
 * ```ts
 * const harness = await testPlugin(allowList({ allow: ['10.0.0.0/8'] }), { budget: 50 });
 * const outcome = await harness.onHttpRequest({ ip: '192.0.2.1' });
 * assert.deepEqual(outcome, { refused: { status: 403, message: 'Address not allowed' } });
 * ```
 *
 * @example Hooks that share one request, and with it one budget and one `requestId`:
 * ```ts
 * const request = harness.request({ headers: { 'x-tenant': 'a' }, parameters: { symbol: 'ETH' } });
 * assert.deepEqual(await request.onHttpRequest(), { passed: true });
 * assert.deepEqual(await request.onBeforeSign({ data: '0x01' }), { value: '0x02' });
 * ```
 *
 * @example A whole service with the plugin in it, without a port:
 * ```ts
 * const service = await harness.serve({ apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'eth', path: '/eth' }] }] });
 * assert.equal((await service.ask('prices/eth')).status, 200);
 * ```
 */
import type { Definition, SimplePlugin } from '../define.ts';
import { createHarness, type HarnessOptions, type PluginHarness } from './plugin-harness.ts';

export { testQuestion } from './around.ts';
export type * from './inputs.ts';
export type { Metrics } from './metrics.ts';
export { TestRequest } from './request.ts';
export type * from './service.ts';
export { testEndpoint } from './services.ts';
export { type TestUpstream, testUpstream, type UpstreamRequest } from './upstream.ts';
export type { HarnessOptions, PluginHarness };

/** A plugin on its own: a package that has only the SDK cannot serve. */
const noService = () =>
  Promise.reject(
    new Error('harness.serve needs the service: import testPlugin from "signed-data-proxy/plugins-sdk/testing"'),
  );

/**
 * Registers a plugin as the service would, and starts it.
 * @param plugin `{name, hooks}`, what a factory returned, or a definition with `setup`.
 * @throws what the service would not start with: an unknown hook or member, a bad config, what `setup` or `start` throws.
 */
export function testPlugin(plugin: SimplePlugin | Definition, options: HarnessOptions = {}): Promise<PluginHarness> {
  return createHarness(plugin, options, noService);
}
