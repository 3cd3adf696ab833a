/** A consumer's program: `verify.ts <answer> <signer> <endpoint ID>` prints the bytes that were signed. */
import { definePlugin, Refusal, type SimplePlugin } from 'signed-data-proxy/plugins-sdk';
import { verifyResponse } from 'signed-data-proxy/verify';

const [answer = '', node = '', endpointId = ''] = process.argv.slice(2);
const result = verifyResponse(JSON.parse(answer), { node, endpointId, maxAge: 60 });
if (!result.ok) throw new Error(result.message);
console.log(result.signedData);

/** Types that are asked for here must be there in a package. */
export const plugin: SimplePlugin = { name: 'typed', hooks: { onHttpRequest: ({ ip }) => ({ reject: ip === '::1' }) } };
export const definition = definePlugin({
  name: 'closed',
  setup: () => ({
    hooks: {
      authenticate: {
        nobody: () => {
          throw new Refusal(401, 'Nobody');
        },
      },
    },
  }),
});
