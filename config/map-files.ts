import { resolve } from 'node:path';
import { errorAt } from '../plugins-sdk/define.ts';
import { keys } from '../plugins-sdk/keys.ts';
import { explain } from '../plugins-sdk/schema/explain.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { parametersIn } from './endpoints.ts';
import { ConfigErrors, findingLine } from './findings.ts';
import type { Interpolated } from './interpolate.ts';
import { readConfigFile, type Tree } from './yaml.ts';

/**
 * Replaces each parameter's `map` that names a file, such as `{file: symbols.yaml}`, by the content of that file. Variables in it
 * are not replaced.
 *
 * @param folder the folder of the config file.
 */
export async function withMapFiles(source: Interpolated, folder: string): Promise<Interpolated> {
  const findings = [...source.findings];
  // A file is read once for all parameters that name it, because it may change at any time.
  const read = new Map<string, Promise<Tree>>();
  for (const { block: parameter, path } of parametersIn(source.value)) {
    const file = fileOf(parameter.map);
    if (file === undefined || source.references.get(`${path}.map.file`)?.doubtful) continue;
    const map = read.get(file) ?? readMap(resolve(folder, file));
    read.set(file, map);
    try {
      Object.assign(parameter, { map: await map });
    } catch (error) {
      if (!(error instanceof ConfigErrors)) throw error;
      findings.push(...error.findings.map((finding) => errorAt(`${path}.map.file`, findingLine(finding))));
      // Without its map no further faults follow from it.
      Reflect.deleteProperty(parameter, 'map');
    }
  }
  return { ...source, findings };
}

/** Returns the file that a map names. With other keys beside it, "file" is a value that clients send. */
function fileOf(map: unknown): string | undefined {
  const { file, ...others } = isRecord(map) ? map : {};
  return typeof file === 'string' && Object.keys(others).length === 0 ? file : undefined;
}

/** Reads a map. @throws ConfigErrors */
async function readMap(file: string): Promise<Tree> {
  const map = await readConfigFile(file);
  // These faults are in this file and not in the config file.
  const wrong = explain(keys.parameters.schema.items.properties.map, map, '');
  if (wrong.length > 0) throw new ConfigErrors(wrong.map((each) => errorAt(file, findingLine(each))));
  return map;
}
