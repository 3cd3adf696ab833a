import { type OpenApiPart, objectSchema, refTo, textSchema } from '../../plugins-sdk/openapi.ts';
import { signersIn } from '../../plugins-sdk/signing.ts';

/** Fields that all examples share. A publicly known key has signed the examples, so their signatures are valid. */
const exampleNames = {
  node: '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A',
  endpointId: `0x${'a1'.repeat(32)}`,
  timestamp: 1767225600,
};
const examples = {
  Encoded: {
    ...exampleNames,
    data: `0x${'14d1120d7b160000'.padStart(64, '0')}`,
    signature:
      '0xd828f8382f23a6aab38665aeb100f44966c27745c061911e733edb4d93f5d53b41157269dcf04fa38dc351b6a2e3d2673943e149c7c4866bd99966361ecdaa031b',
  },
  Raw: {
    ...exampleNames,
    rawData: { asset: 'ETH', price: 3000.5 },
    signature:
      '0xc6b041ee2229b008da9a75f5c1984a5a50eaa1b7babf9a8ad2a545431a2e97c503c76cee0515b186db5201bc10ac926f98d78b0e5b383fc1268e8e98583eccf61c',
  },
};

const ENTRY = objectSchema(
  'One signer’s signatures of this answer',
  {
    node: refTo('schemas', 'Address'),
    signature: refTo('schemas', 'Signature'),
    receiptSignature: refTo('schemas', 'Signature'),
  },
  ['receiptSignature'],
);

const FAILURES = {
  502: { description: 'The signer of the service gave no signature', errors: ['Signing failed'] },
  503: { description: 'Too much is asked of the signer already', errors: ['Server busy'] },
};

/** Describes what signing adds to the document. @param isListed whether an endpoint shows the signatures of all signers. */
export function describeSigning(config: Readonly<Record<string, unknown>>, isListed: boolean): OpenApiPart {
  const isRemote = signersIn(config).some(([, { type }]) => type !== 'environment');
  const signatures = { type: 'array', description: 'Of the signer, and of the one that comes next', items: ENTRY };
  return {
    examples,
    schemas: { Signature: textSchema('^0x[0-9a-f]{130}$', '65 bytes of hex: r, s and v, which is 27 or 28') },
    signed: {
      description:
        '`signature` is the EIP-191 personal signature, by `node`, of the 32-byte digest ' +
        '`keccak256(abi.encodePacked(bytes32 endpointId, uint256 timestamp, bytes data))`. ' +
        'Compare `node` and `endpointId` with those that you expect: an answer proves nothing about its own names.',
      required: { signature: refTo('schemas', 'Signature') },
      ...(isListed && { optional: { signatures } }),
    },
    ...(isRemote && { operation: () => ({ failures: FAILURES }) }),
  };
}
