import { canonicalJson } from './canonical-json.ts';
import { type JsonText, trustedJson } from './json-text.ts';

/** {@link canonicalJson} as what `encode` may show: text that need not be looked at again. @throws CanonicalJsonError */
export function canonicalText(value: unknown): JsonText {
  return trustedJson(canonicalJson(value));
}
