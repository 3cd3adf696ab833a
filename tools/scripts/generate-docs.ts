import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { composeSchema } from '../../config/index.ts';
import { compose } from '../../config/schema/compose.ts';
import { definitions } from '../../service/index.ts';
import { configReference } from './config-reference.ts';
import { sdkReference } from './sdk-reference.ts';
import { stageReference } from './stage-reference.ts';

/** `npm run docs` generates files from the config schema, the table of stages, the SDK's docstrings and the alerts. */

const root = fileURLToPath(new URL('../..', import.meta.url));

const SCHEMA = 'config/config.schema.json';
const REFERENCE = 'docs/configuration.md';
const BEGIN = '<!-- What follows is generated from the schema: npm run docs -->\n';
const PLUGINS = 'docs/plugins.md';
const SDK = 'docs/sdk.md';
const ALERTS = 'examples/deploy/chart/alerts.yaml';
const MONITORING = 'examples/deploy/monitoring.yaml';
const BEGIN_RULES = '# What follows is generated from chart/alerts.yaml: npm run docs\n';
const BEGIN_STAGES =
  '<!-- What follows is generated from kernel/stages.ts, but for the last cell of each row: npm run docs -->\n';

/** Returns the texts of generated files, by path from the project's root. In some only the part after a mark is generated. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const schema = composeSchema(definitions());
  const fileText = (path: string) => readFileSync(join(root, path), 'utf8');
  const behind = (mark: string, path: string, text: string) =>
    [path, `${fileText(path).split(mark)[0]}${mark}${text}`] as const;
  const rules = fileText(ALERTS).replace(/^(?:#.*\n)+/, '');
  const stages = stageReference(fileText(PLUGINS), fileText('kernel/values.ts'));
  return new Map([
    [SCHEMA, `${jsonText(schema)}\n`],
    [SDK, sdkReference(fileText(SDK))],
    behind(BEGIN, REFERENCE, `\n${configReference(compose(definitions()).schema)}`),
    behind(BEGIN_STAGES, PLUGINS, `\n${stages}`),
    behind(BEGIN_RULES, MONITORING, `${rules.replaceAll(/^/gm, '  ').trimEnd()}\n`),
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
