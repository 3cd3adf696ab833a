import { error, optionalKey } from '../plugins-sdk/config.ts';
import { definePlugin, Type } from '../plugins-sdk/index.ts';

const origins = optionalKey(
  'server',
  'cors.origins',
  Type.Array(Type.String({ minLength: 1 }), { description: 'Origins that browsers may call from, or *; default any' }),
);

/** Whether a browser can send a text as `Origin` (RFC 6454, section 6.2): scheme, host and port, all in lower case. */
function isOrigin(text: string): boolean {
  if (text === 'null') return true;
  if (text.includes('*') || !URL.canParse(text)) return false;
  const { origin } = new URL(text);
  return origin === 'null' ? /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#]+$/.test(text) : origin === text;
}

const NO_ORIGIN = 'is no origin such as https://example.com, without path or slash: name each one; a lone * allows all';

const PREFLIGHT_SECONDS = '86400';

type Headers = Readonly<Record<string, string>>;

/** Adds CORS headers to every response, and answers preflights (Fetch standard, section 3.2). */
export const cors = definePlugin({
  name: 'cors',
  keys: [origins],
  changesAnswers: false,
  check: ({ config }) =>
    (origins.in(config) ?? []).flatMap((origin, i) =>
      origin === '*' || isOrigin(origin) ? [] : [error(`server.cors.origins[${i}]`, NO_ORIGIN)],
    ),
  exposes: ['Retry-After', 'X-Request-Id'],
  setup({ config, credentials, exposed: names }) {
    const allowed = origins.in(config);
    const everyone = allowed === undefined || allowed.includes('*');
    const known = new Set(allowed);
    const preflight = {
      'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
      'Access-Control-Allow-Headers': ['Content-Type', ...credentials].join(', '),
      'Access-Control-Max-Age': PREFLIGHT_SECONDS,
    };
    const exposed = { 'Access-Control-Expose-Headers': [...names].sort().join(', ') };
    const open = Object.freeze({ 'Access-Control-Allow-Origin': '*', ...exposed });
    const headersFor = (origin: string | undefined): Headers => {
      if (everyone) return open;
      const common = { Vary: 'Origin', ...exposed };
      if (origin !== undefined && known.has(origin)) return { 'Access-Control-Allow-Origin': origin, ...common };
      // "null" refuses every page, except pages whose own origin is "null" (sandboxed frames, files): these get no header.
      return origin === 'null' ? common : { 'Access-Control-Allow-Origin': 'null', ...common };
    };
    return {
      hooks: { respond: (_, { headers: sent }) => headersFor(sent.origin) },
      routes: [
        { method: 'OPTIONS', path: '*', admit: false, handle: () => ({ status: 204, headers: preflight, body: '' }) },
      ],
    };
  },
});
