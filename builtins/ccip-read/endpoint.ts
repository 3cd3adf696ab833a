import { keys } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';

/** Whether an endpoint needs no credentials. */
export function isOpen({ auth }: Endpoint): boolean {
  return auth.some(({ type }) => type === 'free');
}

/** Whether an endpoint answers at once, in a form that a contract can read. */
export function isFit(endpoint: Endpoint): boolean {
  return endpoint.mode === 'sync' && keys.encoding.of(endpoint) !== undefined && endpoint.block.encrypt === undefined;
}
