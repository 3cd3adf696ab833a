import { createRequire } from 'node:module';

const PACKAGE = '@zama-fhe/relayer-sdk';

/** The only version that is known to behave as this plugin expects; another may fail in other ways, or not fail. */
const VERSION = '0.4.3';

const INSTALL = `npm install ${PACKAGE}@${VERSION}`;

/**
 * Looks for the relayer's SDK without loading it: it takes half a second and 60 MB, and belongs into a worker.
 *
 * @throws Error with the command that installs it, when it is missing or has another version.
 */
export function requireSdk(): void {
  let version: unknown;
  try {
    version = Object(createRequire(import.meta.url)(`${PACKAGE}/package.json`)).version;
  } catch {
    // What cannot be read is to be installed as well.
  }
  if (version === undefined) throw new Error(`settings.fhe needs a package that is not installed: ${INSTALL}`);
  if (version !== VERSION) throw new Error(`settings.fhe needs ${PACKAGE} ${VERSION}, not ${version}: ${INSTALL}`);
}
