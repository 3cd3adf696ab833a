import type { PublicEndpoint } from './endpoint.ts';

/** The data of the page; all of it may be public. */
export interface PageData {
  /** The signer's address, as the service states it. */
  readonly node: string;
  /** The operator's name for the service, and notes for clients. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Whether the service describes itself at `openapi.json`, beside the page. */
  readonly openapi: boolean;
  /** In the order of the config. */
  readonly endpoints: readonly PublicEndpoint[];
}
