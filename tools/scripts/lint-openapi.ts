import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Linter } from './linter.ts';
import { complain, env, fail, root, run } from './package/run.ts';

/** Has redocly and spectral look at the OpenAPI documents of two configs, and takes nothing that they find. */

const documents = join(root, '.cache', 'openapi');
const CONFIGS = ['examples/configs/complete.yaml', 'tools/scripts/openapi-lint/everything.yaml'];

/** They would ask whether there is a newer version, and tell that they ran. */
Object.assign(env, { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' });

/** @returns the path of the document, as `openapi` prints it. */
function documentOf(config: string, index: number): string {
  const text = run(root, process.execPath, 'cli/bin.js', 'openapi', '-c', config);
  const path = join(documents, `${index}.json`);
  writeFileSync(path, text);
  return path;
}

try {
  mkdirSync(documents, { recursive: true });
  const paths = CONFIGS.map(documentOf);
  const linter = new Linter('tools/scripts/openapi-lint');
  linter.run('redocly', 'lint', '--config', linter.path('redocly.yaml'), ...paths);
  const ruleset = ['--ruleset', linter.path('spectral.yaml'), '--fail-severity', 'hint'];
  const said = linter.run('spectral', 'lint', ...ruleset, ...paths);
  if (!said.includes('No results with a severity of')) fail(said);
  console.log(`redocly and spectral find nothing in the documents of ${CONFIGS.join(' and ')}`);
} catch (error) {
  complain(error);
}
