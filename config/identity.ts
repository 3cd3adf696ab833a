import { type Hex, toHex } from '../lib/eth/hex.ts';
import { keccak256 } from '../lib/eth/keccak.ts';
import { CanonicalJsonError, jcs } from '../lib/json/canonical-json.ts';
import {
  type CheckContext,
  type Definition,
  type EndpointDraft,
  type Finding,
  identityParts,
} from '../plugins-sdk/define.ts';
import type { Json } from '../plugins-sdk/kernel.ts';
import { errorAt } from './findings.ts';

/**
 * The text that an endpoint's ID is the hash of, as canonical JSON (RFC 8785): the members that plugins contribute, the others
 * empty.
 * @throws what a plugin's part throws; CanonicalJsonError when a part has no canonical form.
 */
export function identityText(
  definitions: readonly Definition[],
  endpoint: EndpointDraft,
  context: CheckContext,
): string {
  const members = identityParts.map((part): [string, Json] => {
    const owner = definitions.find(({ identity }) => identity?.[part] !== undefined);
    return [part, owner?.identity?.[part]?.(endpoint, context) ?? (part === 'parameters' ? [] : null)];
  });
  return jcs(Object.fromEntries(members));
}

/** `keccak256(utf8(text))` */
export function endpointId(text: string): Hex {
  return toHex(keccak256(Buffer.from(text, 'utf8')));
}

/** Why an endpoint has no ID. */
export function identityFailure({ path }: EndpointDraft, error: unknown): Finding {
  const why = error instanceof CanonicalJsonError ? error.message : 'a plugin failed to describe the endpoint';
  return errorAt(path, `the endpoint ID cannot be derived: ${why}`);
}
