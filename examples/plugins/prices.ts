/**
 * `GET /prices` shows the answers of several endpoints by name: `{"prices/eth-usd": {"node": "0x…", …}}`. Each endpoint is
 * asked as if the client had sent the request by itself. The endpoints must need no parameters.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./prices.ts
 *       config:
 *         endpoints: [prices/eth-usd, prices/btc-usd]
 * ```
 */
import { definePlugin, Type } from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  {
    path: Type.Optional(Type.String({ pattern: '^/', description: 'Path of the route; default /prices' })),
    endpoints: Type.Array(Type.String({ pattern: '^.+/.+$' }), {
      minItems: 1,
      maxItems: 20,
      description: 'Their APIs and names',
    }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: 'prices',
  configSchema,
  setup({ ask, endpoints }, { path = '/prices', endpoints: names }) {
    const shown = names.map((name) => {
      const found = endpoints.find((endpoint) => `${endpoint.api}/${endpoint.name}` === name);
      if (found === undefined) throw new Error(`there is no endpoint ${name}`);
      return { name, id: found.id };
    });
    return {
      routes: [
        {
          method: 'GET',
          path,
          admit: true,
          handle: async (_, exchange) => {
            // Bodies are copied as they are, since every digit of them was signed.
            const members = shown.map(async ({ name, id }) => {
              const { body } = await ask(id, {}, { as: exchange });
              return `${JSON.stringify(name)}:${body}`;
            });
            return { status: 200, body: `{${(await Promise.all(members)).join(',')}}` };
          },
        },
      ],
    };
  },
});
