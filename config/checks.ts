import type { CheckContext, Definition, Finding } from '../plugins-sdk/define.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { errorAt } from './findings.ts';
import type { Redact } from './redact.ts';

/**
 * What the plugins' own checks find.
 * @param sound whether everything has the shape that the checks may rely on; if not, one that fails says nothing.
 */
export function runChecks(
  definitions: readonly Definition[],
  context: CheckContext,
  { sound, redact }: { readonly sound: boolean; readonly redact: Redact },
): Finding[] {
  return definitions.flatMap((definition) => {
    try {
      const findings: unknown = definition.check?.(context) ?? [];
      if (!Array.isArray(findings) || !findings.every(isFinding)) throw new Error('it returned no list of findings');
      return findings;
    } catch (error) {
      if (!sound) return [];
      return [errorAt('settings.plugins', `plugin "${definition.name}" failed to check the config: ${redact(error)}`)];
    }
  });
}

function isFinding(value: unknown): value is Finding {
  if (!isRecord(value) || (value.level !== 'error' && value.level !== 'warning')) return false;
  return typeof value.path === 'string' && typeof value.message === 'string';
}
