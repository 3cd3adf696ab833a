import { signerFromEnvironment } from '../../plugins-sdk/signing/local-key.ts';
import type { Environment } from '../../plugins-sdk/signing/variables.ts';
import { readEnvironment, userPath } from '../../service/surroundings.ts';
import type { Given } from '../arguments.ts';

/**
 * Reads the addresses of the signer, and of the next one if there is one: those of a config file, whose signers are opened for
 * this, or that of the key in the environment.
 * @param variables the variables, if already read: a pipe named by `--env` can be read only once.
 * @throws Error as at the start of the service.
 */
export async function readAddresses(given: Given, variables?: Environment) {
  const env = variables ?? (await readEnvironment(given.optional('env')));
  const config = given.optional('config');
  if (config === undefined) return { current: signerFromEnvironment(env).address, next: undefined };
  return (await import('./configured.ts')).configuredAddresses({ file: userPath(config), env });
}
