import type { Definition, SimplePlugin } from '../../plugins-sdk/define.ts';
import type { HarnessOptions, PluginHarness } from '../../plugins-sdk/testing/index.ts';
import { createHarness } from './harness.ts';

export * from '../../plugins-sdk/testing/index.ts';

/** Refuses to serve: a package with only the SDK has no service. */
const noService = () =>
  Promise.reject(
    new Error('harness.serve needs the service: import testPlugin from "signed-data-proxy/plugins-sdk/testing"'),
  );

/** Registers a plugin like `testPlugin` of `service/testing.ts`, but without `serve`. */
export function testPlugin(plugin: SimplePlugin | Definition, options: HarnessOptions = {}): Promise<PluginHarness> {
  return createHarness(plugin, options, noService);
}
