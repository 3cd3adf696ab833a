import { keys } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';

/** Whether everyone may ask the endpoint. */
export function isOpen({ auth }: Endpoint): boolean {
  return auth.some(({ type }) => type === 'free');
}

/** Whether its answers come at once, and a contract can read them. */
export function isFit(endpoint: Endpoint): boolean {
  return endpoint.mode === 'sync' && keys.encoding.of(endpoint) !== undefined && endpoint.block.encrypt === undefined;
}
