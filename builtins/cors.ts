import { configKey, definePlugin, Type } from '../plugins-sdk/index.ts';

const origins = configKey(
  'server',
  'cors.origins',
  Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), { description: 'Origins that browsers may call from, or *' }),
  ),
);

const PREFLIGHT_SECONDS = '86400';

/** CORS headers on every response, and the answer to preflights (Fetch standard, section 3.2). */
export const cors = definePlugin({
  name: 'cors',
  budget: 'none',
  keys: [origins],
  setup({ config, credentials }) {
    const allowed = origins.in(config);
    const everyone = allowed === undefined || allowed.includes('*');
    const known = new Set(allowed);
    const preflight = {
      'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
      'Access-Control-Allow-Headers': ['Content-Type', ...credentials].join(', '),
      'Access-Control-Max-Age': PREFLIGHT_SECONDS,
    };
    const headersFor = (origin: string | undefined): Record<string, string> => {
      const exposed = { 'Access-Control-Expose-Headers': 'X-Request-Id' };
      if (everyone) return { 'Access-Control-Allow-Origin': '*', ...exposed };
      const value = origin !== undefined && known.has(origin) ? origin : 'null';
      return { 'Access-Control-Allow-Origin': value, Vary: 'Origin', ...exposed };
    };
    return {
      hooks: { respond: (headers, { headers: sent }) => ({ ...headers, ...headersFor(sent.origin) }) },
      routes: [
        { method: 'OPTIONS', path: '*', admit: false, handle: () => ({ status: 204, headers: preflight, body: '' }) },
      ],
    };
  },
});
