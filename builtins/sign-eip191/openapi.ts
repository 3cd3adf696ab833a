import { type Endpoint, objectSchema, refTo } from '../../plugins-sdk/index.ts';
import { signerKey } from '../../plugins-sdk/keys.ts';
import { eip191Part } from '../../plugins-sdk/openapi/components.ts';
import type { OpenApiPart } from '../../plugins-sdk/openapi/part.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';

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

/** Whether any signer of a config is outside the process. */
function isRemote(config: Readonly<Record<string, unknown>>): boolean {
  const chosen = signerKey.in(config);
  if (!isRecord(chosen)) return false;
  const next = isRecord(chosen.next) ? chosen.next.type : 'environment';
  return chosen.type !== 'environment' || next !== 'environment';
}

/** What signing adds to the document. */
export function describeSigning(
  config: Readonly<Record<string, unknown>>,
  wantsAll: (endpoint: Endpoint) => boolean,
  endpoints: readonly Endpoint[],
): OpenApiPart {
  const remote = isRemote(config);
  const { signed } = eip191Part;
  const signatures = { type: 'array', description: 'Of the signer, and of the one that comes next', items: ENTRY };
  return {
    ...eip191Part,
    ...(endpoints.some(wantsAll) && { signed: { ...signed, optional: { signatures } } }),
    ...(remote && { operation: () => ({ failures: FAILURES }) }),
  };
}
