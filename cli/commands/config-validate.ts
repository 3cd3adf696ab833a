import { type LocatedFinding, locatedLine } from '../../config/index.ts';
import { workersOf } from '../../service/listener.ts';
import { complain, print } from '../../service/terminal.ts';
import { escapeUnprintable } from '../../service/text.ts';
import { checkTogether } from '../../service/workers/rules.ts';
import type { Given } from '../arguments.ts';
import { findingJson, printJson } from '../json-output.ts';
import { givenConfig } from './given-config.ts';

/** Checks a config file: endpoint IDs go to stdout, warnings to stderr. */
export async function validateConfig(given: Given): Promise<number> {
  const ofVariables: LocatedFinding[] = [];
  const loaded = await givenConfig(given, (finding) => ofVariables.push(finding));
  const { endpoints, explained } = loaded;
  const warnings = [...ofVariables, ...loaded.warnings, ...(workersOf(loaded.config) > 1 ? checkTogether(loaded) : [])];
  const texts = new Map(explained.map(({ endpoint, text }) => [endpoint, text]));
  const recommendations = loaded.plugins.flatMap(
    ({ definition }) => definition.recommend?.(endpoints, loaded.config) ?? [],
  );
  if (given.flag('json')) {
    const ids = endpoints.map((endpoint) => {
      const { api, name, id } = endpoint;
      return { api, endpoint: name, endpointId: id, ...(given.flag('explain') && { explained: texts.get(endpoint) }) };
    });
    await printJson({ ok: true, endpoints: ids, warnings: warnings.map(findingJson), recommendations });
    return 0;
  }
  const lines = endpoints.flatMap((endpoint) => {
    const line = escapeUnprintable(`${endpoint.api}/${endpoint.name} ${endpoint.id}`);
    return given.flag('explain') ? [line, `  ${texts.get(endpoint)}`] : [line];
  });
  await complain('warning', warnings.map(locatedLine));
  await complain('recommendation', recommendations);
  await print(lines.map((line) => `${line}\n`).join(''));
  return 0;
}
