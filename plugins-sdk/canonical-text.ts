import { canonicalJson, canonicalJsonSteps } from './canonical-json.ts';
import { inTurns } from './json/turns.ts';
import { type JsonText, trustedJson } from './json-text.ts';

/** {@link canonicalJson} as what `encode` may show: text that need not be looked at again. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trustedJson(canonicalJson(value));
}

/**
 * The same for values of which one pass could hold the event loop for too long: other work gets a turn every few thousand
 * members. The value must not change meanwhile.
 *
 * @throws CanonicalJsonError
 */
export async function canonicalTextInSteps(value: unknown): Promise<JsonText> {
  return trustedJson(await inTurns(canonicalJsonSteps(value)));
}
