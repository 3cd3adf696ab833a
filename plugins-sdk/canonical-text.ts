import { canonicalJson, canonicalJsonInSteps } from './canonical-json.ts';
import { type JsonText, trustedJson } from './json-text.ts';

/** {@link canonicalJson} as what `encode` may show: text that need not be looked at again. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trustedJson(canonicalJson(value));
}

/** The same by {@link canonicalJsonInSteps}. */
export async function canonicalTextInSteps(value: unknown): Promise<JsonText> {
  return trustedJson(await canonicalJsonInSteps(value));
}
