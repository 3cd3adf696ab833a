import { type ApiDocument, type Block, listOf } from './document.ts';

/** Matches names of parameters that carry a credential of the operator, whatever their description says. */
const CREDENTIAL =
  /^(?:x-)?(?:api-?key|app-?key|access-?(?:key|token)|auth-?token|authorization|api-?(?:token|secret)|client-?secret|secret-?key|private-?key|pass(?:word|wd)?|subscription-?key|ocp-apim-subscription-key)$/i;
/** The credentials that an operation's security schemes send. */
export interface Security {
  /** Whether there is any credential. */
  readonly hasWay: boolean;
  /** Returns whether they set a parameter, by its place and name. */
  isSent(place: unknown, name: string): boolean;
  /** Returns the name of the variable for a credential. */
  variable(name: string): string;
}

/**
 * Finds parameters that are for the operator, not for clients.
 * @returns the fixed value of a credential, the reason to leave a parameter out, or undefined for a client's parameter.
 */
export function roleOf(
  document: ApiDocument,
  security: Security,
  { name, in: place, required, description, schema: stated, ...flat }: Block,
): { readonly fixed: string } | string | undefined {
  if (security.isSent(place, String(name))) return 'is sent as its security says';
  const schema = document.block(stated ?? flat);
  // A parameter that filters, chooses or counts is no secret.
  const isFilter = /\bfilter/i.test(String(description ?? '')) || listOf(schema.enum).length > 0;
  if (place === 'path' || isFilter || (schema.type ?? 'string') !== 'string') return undefined;
  const words = String(name)
    .replaceAll('_', '-')
    .replace(/([a-z])([A-Z])/g, '$1-$2');
  if (!CREDENTIAL.test(words)) return undefined;
  if (security.hasWay && required !== true) return 'is another credential beside its security';
  return { fixed: `\${${security.variable(String(name))}}` };
}
