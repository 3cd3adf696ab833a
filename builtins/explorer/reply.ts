import { createHash } from 'node:crypto';
import { unicodeEscape } from '../../lib/text.ts';
import type { HttpResponse } from '../../plugins-sdk/index.ts';
import type { PageData } from './endpoint.ts';

/** The placeholder for the data in the page that `bundleExplorer` makes. */
const DATA_MARK = '"DATA"';

/**
 * Returns JSON for a data block of a page. No character in it can end the block or begin a comment (HTML standard,
 * 4.12.1.3), and its meaning as JSON stays the same.
 */
function embeddable(data: PageData): string {
  return JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, unicodeEscape);
}

/** Returns the source expression of a Content Security Policy that allows just this element's text (CSP 3, section 2.3.1). */
function hashOf(template: string, tag: 'script' | 'style'): string {
  const found = [...template.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'))];
  const text = found[0]?.[1];
  if (text === undefined || found.length > 1) throw new Error(`the page must have one <${tag}>`);
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Makes the page's response. Its policy allows only the page's own script, style and images, and requests to the service. */
export function pageReply(template: string, data: PageData): HttpResponse {
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(template, 'script')}`,
    `style-src ${hashOf(template, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-cache',
      'Content-Security-Policy': policy.join('; '),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
    },
    body: template.replace(DATA_MARK, () => embeddable(data)),
  };
}
