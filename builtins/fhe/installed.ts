import { readFileSync } from 'node:fs';
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
  const version = installedVersion();
  if (version === undefined) throw new Error(`settings.fhe needs a package that is not installed: ${INSTALL}`);
  if (version !== VERSION) throw new Error(`settings.fhe needs ${PACKAGE} ${VERSION}, not ${version}: ${INSTALL}`);
}

function installedVersion(): string | undefined {
  try {
    const manifest: unknown = JSON.parse(
      readFileSync(createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`), 'utf8'),
    );
    const isObject = typeof manifest === 'object' && manifest !== null;
    return isObject && 'version' in manifest ? String(manifest.version) : 'one without a version';
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return code === 'MODULE_NOT_FOUND' ? undefined : 'one that cannot be read';
  }
}
