import { type Definition, dataDigest, definePlugin, type Signer, toBytes } from '../plugins-sdk/index.ts';

/** Signs keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)) with EIP-191. The only holder of the key. */
export function signEip191(signer?: () => Signer): Definition {
  return definePlugin({
    name: 'sign-eip191',
    budget: 'none',
    required: true,
    setup() {
      if (signer === undefined) throw new Error('there is no signer');
      const { address, signDigest } = signer();
      return {
        hooks: {
          sign: ({ endpointId, timestamp, data }) => ({
            node: address,
            signature: signDigest(dataDigest(endpointId, timestamp, toBytes(data))),
          }),
        },
      };
    },
  });
}
