import { endpointNames } from '../former-names.ts';
import type { Endpoint } from '../kernel.ts';

/** An endpoint to address requests to; pass what matters to the test. */
export function testEndpoint(members: Partial<Endpoint> = {}): Endpoint {
  const endpoint: Endpoint = {
    id: `0x${'11'.repeat(32)}` as const,
    api: 'test-api',
    name: 'test-endpoint',
    mode: 'sync',
    auth: [{ type: 'free' }],
    block: {},
    apiBlock: {},
    ...endpointNames.present(members),
  };
  return Object.freeze(endpointNames.addTo(endpoint));
}
