/** The types and helpers of plugins' tests that need no service. `service/testing.ts` adds the harness. */
export type * from './inputs.ts';
export type { Metrics } from './metrics.ts';
export type { HarnessOptions, PluginHarness } from './plugin-harness.ts';
export { TestRequest } from './request.ts';
export type * from './service.ts';
export { type TestUpstream, testUpstream, type UpstreamRequest } from './upstream.ts';
export { testEndpoint } from './values.ts';
