import { createRequire } from 'node:module';

const PACKAGE = '@zama-fhe/relayer-sdk';

/** The only version that is known to behave as this plugin expects; another one may fail otherwise, or hide a failure. */
const VERSION = '0.4.3';

const INSTALL = `npm install ${PACKAGE}@${VERSION}`;

/**
 * Checks that the relayer's SDK is installed, without loading it: that takes half a second and 60 MB, and is for a worker.
 *
 * @throws Error with the command that installs the SDK, if it is missing or has another version.
 */
export function requireSdk(): void {
  let version: unknown;
  try {
    version = Object(createRequire(import.meta.url)(`${PACKAGE}/package.json`)).version;
  } catch {
    // A package that cannot be read counts as missing.
  }
  if (version === undefined) throw new Error(`settings.fhe needs a package that is not installed: ${INSTALL}`);
  if (version !== VERSION) throw new Error(`settings.fhe needs ${PACKAGE} ${VERSION}, not ${version}: ${INSTALL}`);
}
