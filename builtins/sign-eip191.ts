import { type Definition, dataDigest, definePlugin, eip191Part, type Signer, toBytes } from '../plugins-sdk/index.ts';

/** Signs keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)) with EIP-191. The only holder of the key. */
export function signEip191(signer?: () => Signer): Definition {
  const theSigner = () => {
    if (signer === undefined) throw new Error('there is no signer');
    return signer();
  };
  return definePlugin({
    name: 'sign-eip191',
    budget: 'none',
    signerAddress: () => theSigner().address,
    openapi: () => eip191Part,
    setup({ endpoints }) {
      const { address, signDigest } = theSigner();
      const ids = new Map(endpoints.map(({ id }) => [id, toBytes(id)]));
      return {
        hooks: {
          sign: ({ endpointId, timestamp, data }) => ({
            node: address,
            signature: signDigest(dataDigest(ids.get(endpointId) ?? endpointId, timestamp, toBytes(data))),
          }),
        },
      };
    },
  });
}
