import type { DescribedOperation } from '../../plugins-sdk/openapi.ts';

/** What the document says of endpoints with `encrypt`. */
export const encrypted: DescribedOperation = {
  remark: 'encrypted, as `abi.encode(bytes32 handle, bytes inputProof)`',
  failures: { 502: { errors: ['FHE encryption failed'] } },
};
