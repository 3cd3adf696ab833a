import type { DescribedOperation } from '../../plugins-sdk/openapi.ts';

/** The remark on endpoints whose API has mirrors. */
export const mirrored: DescribedOperation = {
  remark: 'perhaps of a mirror of the upstream, which the endpoint ID does not name',
};
