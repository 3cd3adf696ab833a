/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The service's signer, or the one that will replace it. */
export type SignerRole = 'current' | 'next';

/** Names of the environment variables that hold keys, by role. */
export const VARIABLES = {
  current: { mnemonic: 'SERVICE_MNEMONIC', privateKey: 'SERVICE_PRIVATE_KEY' },
  next: { mnemonic: 'SERVICE_NEXT_MNEMONIC', privateKey: 'SERVICE_NEXT_PRIVATE_KEY' },
} as const;

/** The variables that hold keys: no plugin sees them, and no config file may refer to them. */
export const SECRET_VARIABLES: readonly string[] = Object.values(VARIABLES).flatMap((names) => Object.values(names));

/** Returns the variables that hold keys and are set, with their values. */
export function signerVariables(env: Environment): Readonly<Record<string, string>> {
  return Object.fromEntries(SECRET_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}

/** Returns the names of variables that have no effect because another is set: a mnemonic wins over a private key. */
export function overruled(given: Environment): string[] {
  return Object.values(VARIABLES).flatMap(({ mnemonic, privateKey }) => (given[mnemonic] ? [privateKey] : []));
}

/** Thrown if no variable holds a signer's key. */
export class MissingKey extends Error {
  /** @param names names of the variables of which one must be set. */
  constructor(names: readonly string[]) {
    super(`${names.join(' or ')} must be set`);
  }
}
