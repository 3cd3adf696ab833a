import { baseUrl, optionalKey } from '../../plugins-sdk/config.ts';
import { type Endpoint, Type } from '../../plugins-sdk/index.ts';

/** A config key of the plugin `upstream-mirrors`; other plugins only read it. */
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

/** Returns the base URLs of an API, without a slash at the end: its own, then its mirrors. */
export function basesOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): readonly string[] {
  return [baseUrl(endpoint), ...(mirrorsKey.of(endpoint) ?? []).map((url) => url.replace(/\/$/, ''))];
}

/** Returns whether a URL is below a base. A host or path that only begins with the same letters is not. */
export function isBelow(base: string, url: string): boolean {
  return url.startsWith(base) && /^(?:[/?]|$)/.test(url.slice(base.length));
}

/** Returns the host of a URL, with its port. */
export function hostOf(url: string): string {
  return /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? '';
}
