/**
 * Calls the upstream with an access token of OAuth 2.0, which it gets by client credentials (RFC 6749, section 4.4). A token is
 * kept until nine tenths of its time are over, and asked for once for all calls that wait for it. When the upstream answers
 * 401, the token is renewed and the call made again, once.
 *
 * The token is fetched as the API is called: with its `timeout`, in one of its slots, through what is listed after this plugin.
 * List it last: what signs or changes calls of the API has no business with the token endpoint.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./upstream-oauth.ts
 * apis:
 *   - oauth:
 *       url: https://login.example.com/token
 *       form: { client_id: '${CLIENT_ID}', client_secret: '${CLIENT_SECRET}', scope: prices } # and whatever else it wants
 * ```
 */
import { configKey, definePlugin, isRefusal, Refusal, type Taps, Type } from 'signed-data-proxy/plugins-sdk';

const url = Type.String({ pattern: '^https?://[^#@\\s]+$', description: 'Token endpoint' });
const form = Type.Record(Type.String(), Type.String(), { description: 'What it is sent; keep secrets in variables' });
const oauth = configKey('api', 'oauth', Type.Optional(Type.Object({ url, form }, { additionalProperties: false })));

export default definePlugin({
  name: 'upstream-oauth',
  keys: [oauth],
  setup({ now }) {
    const tokens = new Map<string, { readonly token: string; readonly renewAt: number }>();
    const callApi: Taps['callApi'] = async (request, { endpoint }, { next, share }) => {
      const config = oauth.of(endpoint);
      if (config === undefined) return undefined;
      const tokenOf = async (rejected?: string): Promise<string> => {
        const known = tokens.get(endpoint.api);
        if (known !== undefined && known.token !== rejected && now() < known.renewAt) return known.token;
        const body = new URLSearchParams({ grant_type: 'client_credentials', ...config.form }).toString();
        const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
        const asked = { method: 'POST', url: config.url, headers, body };
        const { data } = await share(endpoint.api, (flight) => flight.next(asked));
        const { access_token: token, expires_in: seconds } = Object(data);
        if (typeof token !== 'string') throw new Refusal(502, 'API call failed', { reason: 'no access_token' });
        tokens.set(endpoint.api, { token, renewAt: now() + (Number(seconds) || 3600) * 900 });
        return token;
      };
      const { headers } = request;
      const call = (token: string) => next({ ...request, headers: { ...headers, Authorization: `Bearer ${token}` } });
      const token = await tokenOf();
      return call(token).catch(async (error) => {
        if (!isRefusal(error) || error.upstreamStatus !== 401) throw error;
        return call(await tokenOf(token));
      });
    };
    return { hooks: { callApi } };
  },
});
