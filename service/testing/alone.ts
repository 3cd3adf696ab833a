import type { Definition, SimplePlugin } from '../../plugins-sdk/define.ts';
import type { HarnessOptions, PluginHarness } from '../../plugins-sdk/testing/index.ts';
import { createHarness } from './harness.ts';

export * from '../../plugins-sdk/testing/index.ts';

/** A package that has only the SDK cannot serve. */
const noService = () =>
  Promise.reject(
    new Error('harness.serve needs the service: import testPlugin from "signed-data-proxy/plugins-sdk/testing"'),
  );

/** As in `service/testing.ts`, but for `serve`. */
export function testPlugin(plugin: SimplePlugin | Definition, options: HarnessOptions = {}): Promise<PluginHarness> {
  return createHarness(plugin, options, noService);
}
