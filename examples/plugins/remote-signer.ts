/**
 * Has answers signed by a service of yours, so that no key is in the proxy. It POSTs
 *
 * ```json
 * {"address":"0x…","digest":"0x…"}
 * ```
 *
 * and takes `{"signature":"0x…"}`: the EIP-191 personal signature of the 32 bytes of the digest, which is what
 * `wallet.signMessage(getBytes(digest))` of ethers makes. A signature that is not by `address` goes nowhere.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - { source: 'builtin:sign-eip191', enabled: false }
 *     - source: ./remote-signer.ts
 *       config:
 *         url: http://signer.internal/sign
 *         address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
 * ```
 */
import {
  AddressSchema,
  checksumAddress,
  createHttpClient,
  dataDigest,
  definePlugin,
  type Exchange,
  eip191Part,
  type Hex,
  millisecondsSchema,
  Refusal,
  recoverAddress,
  Type,
  toBytes,
  toHex,
} from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  {
    url: Type.String({ pattern: '^https?://', description: 'Where digests are POSTed' }),
    address: AddressSchema,
    timeout: Type.Optional(millisecondsSchema('Milliseconds for a signature; default 2000')),
  },
  { additionalProperties: false },
);

/** @throws Error unless it is the address's own signature of the digest. */
function requireSignature(digest: Uint8Array, address: Hex, { status, body }: { status: number; body: Buffer }): Hex {
  if (status !== 200) throw new Error(`the signer answered ${status}`);
  const { signature } = Object(JSON.parse(body.toString()));
  if (recoverAddress(digest, signature) !== address) throw new Error('the signature is by somebody else');
  return toHex(toBytes(signature));
}

export default definePlugin({
  name: 'remote-signer',
  // Its timeout bounds it.
  budget: 'none',
  configSchema,
  signerAddress: ({ address }) => checksumAddress(address),
  openapi: () => ({ ...eip191Part, operation: () => ({ failures: { 502: { errors: ['Signing failed'] } } }) }),
  setup(_, { url, timeout = 2000, ...config }) {
    const client = createHttpClient();
    const address = checksumAddress(config.address);
    const headers = { 'Content-Type': 'application/json' };
    const sign = async (digest: Uint8Array, { client: signal }: Exchange): Promise<Hex> => {
      const body = JSON.stringify({ address, digest: toHex(digest) });
      const request = { method: 'POST', url, headers, body, timeout, maxBytes: 4096, signal };
      return requireSignature(digest, address, await client.request(request));
    };
    return {
      stop: () => client.close(),
      hooks: {
        sign: async ({ endpointId, timestamp, data }, exchange) => {
          try {
            const digest = dataDigest(endpointId, timestamp, toBytes(data));
            return { node: address, signature: await sign(digest, exchange) };
          } catch (error) {
            throw new Refusal(502, 'Signing failed', { reason: String(error) });
          }
        },
      },
    };
  },
});
