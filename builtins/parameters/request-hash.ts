import { type Hex, keccak256, toHex } from '../../lib/eth/hex.ts';
import { CanonicalJsonError, jcs } from '../../lib/json/canonical-json.ts';
import { type Parameters, Refusal } from '../../plugins-sdk/index.ts';
import { invalidParameter } from '../shared/parameter-value.ts';

/** Returns keccak256 of the UTF-8 text of the canonical JSON (RFC 8785) of `{"parameters": …}`. @throws CanonicalJsonError */
function hashOf(parameters: Parameters): Hex {
  return toHex(keccak256(Buffer.from(jcs({ parameters }), 'utf8')));
}

function hasHash(parameters: Parameters): boolean {
  try {
    return hashOf(parameters) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Returns the hash of a question's parameters, which a receipt signs.
 * @param parameters those that clients may give, defaults filled in.
 * @param names reserved parameters that the endpoint takes; one that was not sent counts as `null`.
 * @throws Refusal 400 for a value that has no canonical JSON, such as one with a lone surrogate.
 */
export function requestHashOf(parameters: Parameters, names: readonly string[], reserved: Parameters): Hex {
  const asked = { ...parameters, ...Object.fromEntries(names.map((name) => [name, reserved[name] ?? null])) };
  try {
    return hashOf(asked);
  } catch (cause) {
    if (!(cause instanceof CanonicalJsonError)) throw cause;
    const [name = ''] = Object.entries(asked).find(([key, value]) => !hasHash({ [key]: value })) ?? [];
    const message = names.includes(name) ? `Invalid \`${name}\` request parameter` : invalidParameter(name);
    throw new Refusal(400, message, { reason: cause.message });
  }
}
