/**
 * Prices requests by a table: a base amount, and amounts that parameters add. All amounts are in the smallest unit of the
 * token, in quotes.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./tariff.ts
 *       config:
 *         base: '1000'
 *         each: { symbols: '500' }                    # for each item of a list, or of a text with commas
 *         times: { days: '20' }                       # times the number
 *         values: { tier: { basic: '0', pro: '3000' } }
 * apis:
 *   - name: prices
 *     auth:
 *       type: x402-exact
 *       accepts: [{ amount: { by: tariff, max: '50000' }, … }]
 * ```
 */
import { definePlugin, type Json, Refusal, Type } from 'signed-data-proxy/plugins-sdk';

const Amount = Type.String({ pattern: '^(?:0|[1-9][0-9]{0,30})$', description: 'In the smallest unit of the token' });
const Amounts = Type.Record(Type.String(), Amount);

export const configSchema = Type.Object(
  {
    base: Amount,
    each: Type.Optional(Amounts),
    times: Type.Optional(Amounts),
    values: Type.Optional(Type.Record(Type.String(), Amounts)),
  },
  { additionalProperties: false },
);

/** Looks up own members only: clients choose names of parameters, and `constructor` is one. */
const own = <T>(table: Readonly<Record<string, T>>, name: string) =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Counts items as the upstream splits its text; it gets nested lists as their items. No item counts as one: it may mean all. */
const itemsIn = (value: Json) => String(value).split(',').length;

function count(name: string, value: Json): bigint {
  if (!/^[0-9]{1,15}$/.test(String(value))) throw new Refusal(400, `Invalid parameter: ${name}`);
  return BigInt(String(value));
}

export default definePlugin({
  name: 'tariff',
  budget: 200,
  configSchema,
  setup: (_, { base, each = {}, times = {}, values = {} }) => ({
    hooks: {
      price: {
        tariff: (parameters) => {
          let price = BigInt(base);
          for (const [name, value] of Object.entries(parameters)) {
            const [table, item, unit] = [own(values, name), own(each, name), own(times, name)];
            const chosen = table && own(table, String(value));
            if (table && chosen === undefined) throw new Refusal(400, `Invalid parameter: ${name}`);
            price += BigInt(chosen ?? 0) + BigInt(item ?? 0) * BigInt(itemsIn(value));
            if (unit !== undefined) price += BigInt(unit) * count(name, value);
          }
          return price;
        },
      },
    },
  }),
});
