import { type Hex, toHex } from '../lib/eth/hex.ts';
import { keccak256 } from '../lib/eth/keccak.ts';
import { CanonicalJsonError, jcs } from '../lib/json/canonical-json.ts';
import type { CheckContext, Definition, EndpointDraft, Finding, IdentityPart } from '../plugins-sdk/define.ts';
import type { Json } from '../plugins-sdk/kernel.ts';
import { errorAt } from './findings.ts';

type Specification = Record<IdentityPart, Json>;

/** What an endpoint is, apart from its names: the members that plugins contribute, the others empty. */
function specification(
  definitions: readonly Definition[],
  endpoint: EndpointDraft,
  context: CheckContext,
): Specification {
  const part = (name: IdentityPart, otherwise: Json): Json => {
    const owner = definitions.find(({ identity }) => identity?.[name] !== undefined);
    return owner?.identity?.[name]?.(endpoint, context) ?? otherwise;
  };
  return {
    url: part('url', null),
    path: part('path', null),
    method: part('method', null),
    parameters: part('parameters', []),
    encoding: part('encoding', null),
    encrypt: part('encrypt', null),
  };
}

/**
 * The text that an endpoint's ID is the hash of, as canonical JSON (RFC 8785).
 * @throws what a plugin's part throws; CanonicalJsonError when a part has no canonical form.
 */
export function identityText(
  definitions: readonly Definition[],
  endpoint: EndpointDraft,
  context: CheckContext,
): string {
  return jcs(specification(definitions, endpoint, context));
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

/** Identity parts that two plugins contribute. */
export function checkIdentityOwners(definitions: readonly Definition[]): Finding[] {
  const owners = new Map<string, string>();
  return definitions.flatMap(({ name, identity = {} }) => {
    return Object.keys(identity).flatMap((part) => {
      const other = owners.get(part);
      owners.set(part, name);
      if (other === undefined) return [];
      return [
        errorAt(
          'settings.plugins',
          `both plugin "${other}" and plugin "${name}" contribute "${part}" to the endpoint ID`,
        ),
      ];
    });
  });
}
