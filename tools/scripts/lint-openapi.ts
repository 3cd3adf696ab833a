import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env, fail, root, run } from './package/run.ts';

/**
 * Has redocly and spectral look at the OpenAPI documents of two configs, and takes nothing that they find. They are installed as
 * their own lock file says, when it has changed.
 */

const folder = join(root, 'tools/scripts/openapi-lint');
const documents = join(root, '.cache', 'openapi');
const CONFIGS = ['examples/configs/complete.yaml', 'tools/scripts/openapi-lint/everything.yaml'];

/** They would ask whether there is a newer version, and tell that they ran. */
Object.assign(env, { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' });

function install(): void {
  const installed = join(folder, 'node_modules', '.package-lock.json');
  const changed = statSync(join(folder, 'package-lock.json')).mtimeMs;
  if (existsSync(installed) && statSync(installed).mtimeMs > changed) return;
  run(folder, 'npm', 'ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund');
}

/** @returns the path of the document, as `openapi` prints it. */
function documentOf(config: string, index: number): string {
  const text = run(root, process.execPath, 'cli/bin.js', 'openapi', '-c', config);
  const path = join(documents, `${index}.json`);
  writeFileSync(path, text);
  return path;
}

try {
  install();
  mkdirSync(documents, { recursive: true });
  const paths = CONFIGS.map(documentOf);
  const tool = (name: string) => join(folder, 'node_modules', '.bin', name);
  run(root, tool('redocly'), 'lint', '--config', join(folder, 'redocly.yaml'), ...paths);
  const ruleset = ['--ruleset', join(folder, 'spectral.yaml'), '--fail-severity', 'hint'];
  const said = run(root, tool('spectral'), 'lint', ...ruleset, ...paths);
  if (!said.includes('No results with a severity of')) fail(said);
  console.log(`redocly and spectral find nothing in the documents of ${CONFIGS.join(' and ')}`);
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
