import { receiptKey } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { type OpenApiPart, objectSchema, refTo } from '../../plugins-sdk/openapi.ts';
import { invalidParameter } from '../shared/parameter-value.ts';
import { coveredNames } from '../shared/path-parameters.ts';

/** Describes receipts. */
export function describeReceipts(endpoints: readonly Endpoint[]): OpenApiPart {
  if (!endpoints.some((endpoint) => receiptKey.of(endpoint))) return {};
  const hash = (description: string) => ({ ...refTo('schemas', 'Bytes32'), description });
  const Receipt = objectSchema(
    'For which parameters the answer was given, on endpoints whose operator has receipts made. `signature` is the EIP-712 ' +
      "signature, by `node`, with the domain `{name: 'Signed Data Receipt', version: '1'}`, of " +
      '`Receipt(bytes32 endpointId,bytes32 requestHash,bytes32 dataHash,uint256 timestamp)`',
    {
      requestHash: hash('keccak256 of the canonical JSON (RFC 8785) of `{"parameters": {…}}`, defaults filled in'),
      dataHash: hash('keccak256 of `data`; of a raw answer the hash that is signed'),
      signature: { ...refTo('schemas', 'Bytes'), description: '65 bytes of hex: r, s and v, which is 27 or 28' },
    },
  );
  return {
    schemas: { Receipt },
    signed: { optional: { receipt: refTo('schemas', 'Receipt') } },
    operation: (endpoint) => {
      if (receiptKey.of(endpoint) !== true) return undefined;
      const errors = coveredNames(endpoint).map((name) => invalidParameter(name));
      const responses = errors.length === 0 ? {} : { responses: { 400: { errors } } };
      return { remark: 'with a receipt', ...responses };
    },
  };
}
