import { type ApiDocument, type Block, listOf } from './document.ts';

/** Parameters that carry a credential of the operator's, whatever the document says of them. */
const CREDENTIAL =
  /^(?:x-)?(?:api-?key|app-?key|access-?(?:key|token)|auth-?token|authorization|api-?(?:token|secret)|client-?secret|secret-?key|private-?key|pass(?:word|wd)?|subscription-?key|ocp-apim-subscription-key)$/i;
/** How the security of an operation shows who asks. */
export interface Security {
  /** Whether it has a credential. */
  readonly hasWay: boolean;
  /** Whether it sends a value in that place, under that name. */
  isSent(place: unknown, name: string): boolean;
  /** Names the variable of a credential. */
  variable(name: string): string;
}

/**
 * Tells which parameters of an operation are for its operator, so that no client gives them.
 * @returns the value of a credential, the reason why a parameter is left out, or nothing for what clients give.
 */
export function roleOf(
  document: ApiDocument,
  security: Security,
  { name, in: place, required, description, schema: stated, ...flat }: Block,
): { readonly fixed: string } | string | undefined {
  if (security.isSent(place, String(name))) return 'is sent as its security says';
  const schema = document.block(stated ?? flat);
  // What filters, chooses or counts is no secret.
  const isFilter = /\bfilter/i.test(String(description ?? '')) || listOf(schema.enum).length > 0;
  if (place === 'path' || isFilter || (schema.type ?? 'string') !== 'string') return undefined;
  const words = String(name)
    .replaceAll('_', '-')
    .replace(/([a-z])([A-Z])/g, '$1-$2');
  if (!CREDENTIAL.test(words)) return undefined;
  if (security.hasWay && required !== true) return 'is another credential beside its security';
  return { fixed: `\${${security.variable(String(name))}}` };
}
