import { ConfigErrors } from '../../config/findings.ts';
import { loadConfig } from '../../config/load.ts';
import type { Tree } from '../../config/yaml.ts';
import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import { Conversion, type Imported, type ImportOptions } from './convert.ts';
import { repair } from './repair.ts';

/**
 * What a config has of an OpenAPI document, which the service would start with. Environment and files do not matter.
 * @throws Error for a document of another kind.
 */
export async function importDocument(
  tree: Tree,
  options: ImportOptions & { readonly builtins: readonly Definition[] },
): Promise<Imported> {
  const imported = new Conversion(tree, options);
  await repair(imported, (apis) => findingsOf({ version: '1.0', apis }, options.builtins));
  return imported;
}

async function findingsOf(tree: Tree, builtins: readonly Definition[]): Promise<readonly Finding[]> {
  try {
    await loadConfig({ file: '/config.yaml', tree, env: {}, builtins, allowUnset: true });
    return [];
  } catch (error) {
    if (error instanceof ConfigErrors) return error.findings;
    throw error;
  }
}
