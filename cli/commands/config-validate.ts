import { type LocatedFinding, locatedLine } from '../../config/index.ts';
import { workersOf } from '../../service/listener.ts';
import { checkTogether } from '../../service/state-engine.ts';
import { complain, print } from '../../service/terminal.ts';
import { escapeUnprintable } from '../../service/text.ts';
import type { Given } from '../arguments.ts';
import { findingJson, printJson } from '../json-output.ts';
import { givenConfig } from './given-config.ts';

/** Checks a config file: endpoint IDs go to stdout, warnings to stderr. */
export async function validateConfig(given: Given): Promise<void> {
  const ofVariables: LocatedFinding[] = [];
  const loaded = await givenConfig(given, (finding) => ofVariables.push(finding));
  const { endpoints, explained } = loaded;
  const warnings = [...ofVariables, ...loaded.warnings, ...(workersOf(loaded.config) > 1 ? checkTogether(loaded) : [])];
  const recommendations = loaded.plugins.flatMap(
    ({ definition }) => definition.recommend?.(endpoints, loaded.config) ?? [],
  );
  if (given.flag('json')) {
    const ids = explained.map(({ endpoint: { api, name, id }, text }) => {
      return { api, endpoint: name, endpointId: id, ...(given.flag('explain') && { explained: text }) };
    });
    return printJson({ ok: true, endpoints: ids, warnings: warnings.map(findingJson), recommendations });
  }
  const lines = explained.flatMap(({ endpoint: { api, name, id }, text }) => {
    const line = escapeUnprintable(`${api}/${name} ${id}`);
    return given.flag('explain') ? [line, `  ${text}`] : [line];
  });
  await complain('warning', warnings.map(locatedLine));
  await complain('recommendation', recommendations);
  await print(lines.map((line) => `${line}\n`).join(''));
}
