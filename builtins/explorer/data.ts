import type { PublicEndpoint } from '../../plugins-sdk/index.ts';

/** What the page is told: nothing that a client may not know. */
export interface PageData {
  /** The address that this service says it signs with. */
  readonly node: string;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
}
