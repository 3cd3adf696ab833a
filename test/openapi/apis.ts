/** A way to pay, of an `auth`. */
export const payment = {
  type: 'x402',
  network: 1,
  rpc: 'http://127.0.0.1:1',
  token: `0x${'0'.repeat(40)}`,
  amount: '7',
  recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
};
const keyed = { type: 'apiKey', keys: ['the-key-of-a-client'] };
const price = { type: 'int256', path: '$.price', times: '1e2' };

/** @param timeout of the API `open`, in milliseconds. */
export function apisAt(url: string, timeout = 10_000) {
  const endpoint = (name: string, more: object = {}) => ({ name, path: `/${name}`, ...more });
  return [
    {
      name: 'open',
      url,
      auth: { type: 'free' },
      timeout,
      endpoints: [
        endpoint('encoded', {
          description: 'A price',
          encoding: price,
          parameters: [
            { name: 'symbol', required: true, description: 'Which asset' },
            { name: 'currency', default: 'usd' },
            { name: 'tier', fixed: 'gold' },
            { name: 'realm', default: 'inner', secret: true },
          ],
        }),
        endpoint('raw'),
        endpoint('chosen', { encoding: { type: '*', path: '*', times: '*' } }),
        endpoint('later', {
          mode: 'async',
          method: 'POST',
          parameters: [{ name: 'input', in: 'body', required: true }],
        }),
        endpoint('form', {
          method: 'POST',
          bodyType: 'form',
          parameters: [{ name: 'input', in: 'body', schema: { type: ['string', 'null'], maxLength: 3 } }],
        }),
        endpoint('later-encoded', { mode: 'async', encoding: price }),
        endpoint('live', { mode: 'stream' }),
        endpoint('live-encoded', { mode: 'stream', encoding: price }),
        endpoint('proven', { responseMatches: [{ type: 'regex', value: 'price' }] }),
      ],
    },
    {
      name: 'closed',
      url,
      endpoints: [
        endpoint('keyed', { auth: keyed }),
        endpoint('paid', { auth: [keyed, payment] }),
        endpoint('either', { auth: [payment, keyed], cache: { maxAge: 1 } }),
        endpoint('anyone', { auth: [keyed, { type: 'free' }] }),
      ],
    },
  ];
}
