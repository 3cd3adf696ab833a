import type { Definition, SimplePlugin } from '../plugins-sdk/define.ts';
import { createHarness, type HarnessOptions, type PluginHarness } from '../plugins-sdk/testing/plugin-harness.ts';
import type { Serve } from '../plugins-sdk/testing/service.ts';

/**
 * The SDK's test harness as `signed-data-proxy/plugins-sdk/testing`, where a whole service is at hand. It is loaded only for tests that
 * serve.
 */
export * from '../plugins-sdk/testing/index.ts';

const serve: Serve = async (...args) => (await import('./plugin/serve.ts')).serve(...args);

/** {@inheritDoc harness.testPlugin} */
export function testPlugin(plugin: SimplePlugin | Definition, options: HarnessOptions = {}): Promise<PluginHarness> {
  return createHarness(plugin, options, serve);
}
