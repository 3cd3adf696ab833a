import { loadConfig } from '../../config/index.ts';
import { openApiDocument } from '../../plugins-sdk/openapi.ts';
import { publicEndpoint } from '../../plugins-sdk/public-endpoint.ts';
import type { Given } from '../arguments.ts';
import { definitions } from '../service.ts';
import { readEnvironment, userPath } from '../surroundings.ts';
import { complain, print } from '../terminal.ts';

/** Prints what `GET /openapi.json` answers, asked for or not. An endpoint whose ID depends on an unset variable is left out. */
export async function printOpenApi(given: Given): Promise<number> {
  const file = userPath(given.value('config'));
  const env = await readEnvironment(given.optional('env'));
  const { config, endpoints, warnings } = await loadConfig({ file, env, builtins: definitions(), allowUnset: true });
  await complain(
    'warning',
    warnings.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)),
  );
  const document = openApiDocument({ version: String(config.version), endpoints: endpoints.map(publicEndpoint) });
  await print(`${JSON.stringify(document, undefined, 2)}\n`);
  return 0;
}
