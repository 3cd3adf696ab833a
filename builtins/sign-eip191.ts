import {
  type Definition,
  dataDigest,
  definePlugin,
  refTo,
  type Signer,
  textSchema,
  toBytes,
} from '../plugins-sdk/index.ts';

const ABOUT =
  '`signature` is the EIP-191 personal signature, by `node`, of the 32-byte digest ' +
  '`keccak256(abi.encodePacked(bytes32 endpointId, uint256 timestamp, bytes data))`. ' +
  'Compare `node` and `endpointId` with those that you expect: an answer proves nothing about its own names.';

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
    openapi: () => ({
      schemas: { Signature: textSchema('^0x[0-9a-f]{130}$', '65 bytes of hex: r, s and v, which is 27 or 28') },
      signed: { description: ABOUT, required: { signature: refTo('schemas', 'Signature') } },
    }),
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
