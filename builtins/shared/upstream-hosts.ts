import { baseUrl, optionalKey } from '../../plugins-sdk/config.ts';
import { type Endpoint, Type } from '../../plugins-sdk/index.ts';

/** Of the plugin `upstream-mirrors`; others only read it. */
export const mirrorsKey = optionalKey(
  'api',
  'mirrors',
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 10,
    uniqueItems: true,
    description: 'Base URLs to try in turn where url fails; default none',
  }),
);

/** The base URLs of an API without a slash at the end: its own, then its mirrors. */
export function basesOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): readonly string[] {
  return [baseUrl(endpoint), ...(mirrorsKey.of(endpoint) ?? []).map((url) => url.replace(/\/$/, ''))];
}

/** Whether a URL is one below a base; a host or a path that only begins alike is not. */
export function isBelow(base: string, url: string): boolean {
  return url.startsWith(base) && /^(?:[/?]|$)/.test(url.slice(base.length));
}

/** The host that a URL names, with its port. */
export function hostOf(url: string): string {
  return /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? '';
}
