import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { composeSchema } from '../../config/index.ts';
import { compose } from '../../config/schema/compose.ts';
import { definitions } from '../../service/index.ts';
import { configReference } from './config-reference.ts';
import { root } from './package/run.ts';
import { sdkReference } from './sdk-reference.ts';
import { stageReference } from './stage-reference.ts';

/** `npm run docs` generates files from the config schema, the table of stages, the SDK's docstrings and the alerts. */

const SDK = 'docs/sdk.md';
const PLUGINS = 'docs/plugins.md';

const fileText = (path: string) => readFileSync(join(root, path), 'utf8');

/** Returns a file's path and text with another part below its comment `What follows is generated …`. */
function below(path: string, generated: string): [string, string] {
  const [above = ''] = /^[\s\S]*\n.*What follows is generated.*\n/.exec(fileText(path)) ?? [];
  return [path, `${above}${generated}`];
}

/** Returns the texts of generated files, by path from the project's root. In some only the last part is generated. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const rules = fileText('examples/deploy/chart/alerts.yaml').replace(/^(?:#.*\n)+/, '');
  return new Map([
    ['config/config.schema.json', `${jsonText(composeSchema(definitions()))}\n`],
    [SDK, sdkReference(fileText(SDK))],
    below('docs/configuration.md', `\n${configReference(compose(definitions()).schema)}`),
    below(PLUGINS, `\n${stageReference(fileText(PLUGINS), fileText('kernel/values.ts'))}`),
    below('examples/deploy/monitoring.yaml', `${rules.replaceAll(/^/gm, '  ').trimEnd()}\n`),
  ]);
}

/** Returns JSON indented as the formatter of the sources does it, with lists of plain values on one line. */
function jsonText(value: object): string {
  const text = JSON.stringify(value, undefined, 2);
  return text.replace(/\[\s+("[^[\]{}]*")\s+\]/g, (_, items: string) => `[${items.replace(/,\s+/g, ', ')}]`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of generatedFiles()) writeFileSync(join(root, path), text);
}
