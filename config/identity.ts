import type { Json } from '../kernel/values.ts';
import { type Hex, keccak256, toHex } from '../lib/eth/hex.ts';
import { CanonicalJsonError, jcs } from '../lib/json/canonical-json.ts';
import {
  type CheckContext,
  type Definition,
  type EndpointDraft,
  errorAt,
  type Finding,
  identityParts,
} from '../plugins-sdk/define.ts';

/**
 * Returns the text whose hash is an endpoint's ID: canonical JSON (RFC 8785) of the members that plugins contribute. A member
 * that no plugin contributes is empty. If the text cannot be made, returns a finding that says why.
 */
export function identityText(
  definitions: readonly Definition[],
  endpoint: EndpointDraft,
  context: CheckContext,
): string | Finding {
  const memberOf = (part: (typeof identityParts)[number]): [string, Json] => {
    const owner = definitions.find(({ identity }) => identity?.[part] !== undefined);
    return [part, owner?.identity?.[part]?.(endpoint, context) ?? (part === 'parameters' ? [] : null)];
  };
  try {
    return jcs(Object.fromEntries(identityParts.map(memberOf)));
  } catch (error) {
    const why = error instanceof CanonicalJsonError ? error.message : 'a plugin failed to describe the endpoint';
    return errorAt(endpoint.path, `the endpoint ID cannot be derived: ${why}`);
  }
}

/** Returns the endpoint ID of an identity text: `keccak256(utf8(text))`. */
export function endpointId(text: string): Hex {
  return toHex(keccak256(Buffer.from(text, 'utf8')));
}
