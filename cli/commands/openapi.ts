import { locatedLine } from '../../config/index.ts';
import { describeService } from '../../service/description.ts';
import { packageVersion } from '../../service/surroundings.ts';
import { complain, print } from '../../service/terminal.ts';
import type { Given } from '../arguments.ts';
import { givenConfig } from './given-config.ts';

/** Prints the document of `GET /openapi.json`, served or not. An endpoint whose ID depends on an unset variable is left out. */
export async function printOpenApi(given: Given): Promise<void> {
  const loaded = await givenConfig(given);
  await complain('warning', loaded.warnings.map(locatedLine));
  await print(`${JSON.stringify(describeService({ ...loaded, version: packageVersion() }).document, undefined, 2)}\n`);
}
