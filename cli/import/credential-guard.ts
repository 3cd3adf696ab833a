import { type ApiDocument, type Block, listOf } from './document.ts';

/** Parameters that carry a credential of the operator's, whatever the document says of them. */
const CREDENTIAL =
  /^(?:x-)?(?:api-?key|app-?key|access-?(?:key|token)|auth-?token|authorization|api-?(?:token|secret)|subscription-?key|ocp-apim-subscription-key)$/i;
/** The same, where the document names no other credential: beside one they are what an operation is about. */
const ALONE = /^(?:x-)?(?:auth|client-?secret|secret(?:-?key)?|pass(?:word|wd)?|private-?key)$/i;
/** By itself an application is what clients ask for. */
const BESIDE_A_KEY = /^(?:x-)?app-?id$/i;
const KEY = /^(?:x-)?app-?key$/i;

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
  parameter: Block,
  beside: readonly Block[],
): { readonly fixed: string } | string | undefined {
  const { name, in: place, required, description } = parameter;
  if (security.isSent(place, String(name))) return 'is sent as its security says';
  const schema = document.block(parameter.schema ?? parameter);
  // What filters, chooses or counts is no secret.
  const isFilter = /\bfilter/i.test(String(description ?? '')) || listOf(schema.enum).length > 0;
  if (place === 'path' || isFilter || (schema.type ?? 'string') !== 'string') return undefined;
  const words = wordsOf(parameter);
  const isBesideKey = () => beside.some((each) => each.in === place && KEY.test(wordsOf(each)));
  const isCredential = BESIDE_A_KEY.test(words)
    ? isBesideKey()
    : CREDENTIAL.test(words) || (ALONE.test(words) && !security.hasWay);
  if (!isCredential) return undefined;
  if (security.hasWay && required !== true) return 'is another credential beside its security';
  return { fixed: `\${${security.variable(String(name))}}` };
}

/** A name with a hyphen between its words. */
function wordsOf({ name }: Block): string {
  return String(name)
    .replaceAll('_', '-')
    .replace(/([a-z])([A-Z])/g, '$1-$2');
}
