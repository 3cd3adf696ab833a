import type { PublicEndpoint } from '../endpoint.ts';
import type { Asked } from './form.ts';

/** What code is made of. */
export interface Code {
  readonly endpoint: PublicEndpoint;
  readonly asked: Asked;
  readonly url: string;
  /** The address that must have signed. */
  readonly node: string;
}

/** The variable that holds a credential, so that code can be shown to others. */
export function variableOf(header: string): string {
  return header.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
}
