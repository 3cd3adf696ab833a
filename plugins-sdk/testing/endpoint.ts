import type { Endpoint } from '../../kernel/values.ts';

/** Makes an endpoint for requests of a test. @param members those that matter to the test. */
export function testEndpoint(members: Partial<Endpoint> = {}): Endpoint {
  return Object.freeze({
    id: `0x${'11'.repeat(32)}` as const,
    api: 'test-api',
    name: 'test-endpoint',
    mode: 'sync',
    auth: [{ type: 'free' }],
    block: {},
    apiBlock: {},
    ...members,
  });
}
