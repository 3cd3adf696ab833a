import { loadConfig, locatedLine } from '../../config/index.ts';
import { describeService } from '../../plugins-sdk/host/openapi/document.ts';
import type { Given } from '../arguments.ts';
import { definitions } from '../service/index.ts';
import { packageVersion, readEnvironment, userPath } from '../surroundings.ts';
import { complain, print } from '../terminal.ts';

/** Prints what `GET /openapi.json` answers, asked for or not. An endpoint whose ID depends on an unset variable is left out. */
export async function printOpenApi(given: Given): Promise<number> {
  const file = userPath(given.value('config'));
  const env = await readEnvironment(given.optional('env'));
  const loaded = await loadConfig({ file, env, builtins: definitions(), allowUnset: true });
  await complain('warning', loaded.warnings.map(locatedLine));
  await print(`${JSON.stringify(describeService({ ...loaded, version: packageVersion() }).document, undefined, 2)}\n`);
  return 0;
}
