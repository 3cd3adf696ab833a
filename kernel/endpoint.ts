import type { Hex } from './exchange.ts';

/** One configured way to authenticate; `type` names the plugin variant that checks it. */
export type AuthMethod = Readonly<Record<string, unknown>> & { readonly type: string };

/** A configured endpoint, validated and identified. Plugins read their own keys of it through their config keys. */
export interface Endpoint {
  readonly id: Hex;
  readonly api: string;
  readonly name: string;
  readonly mode: string;
  /** Tried in order; never empty. */
  readonly auth: readonly AuthMethod[];
  /** The endpoint's block of the config file. */
  readonly own: Readonly<Record<string, unknown>>;
  /** The block of its API. */
  readonly shared: Readonly<Record<string, unknown>>;
}
