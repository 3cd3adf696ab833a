import { ConfigErrors, type LocatedFinding } from '../config/findings.ts';
import { describeError, print } from '../service/terminal.ts';
import { escapeUnprintable } from '../service/text.ts';

/** Writes a command's result as one line of JSON. @param rewrite changes the line before it is written. */
export function printJson(result: Readonly<Record<string, unknown>>, rewrite = (json: string) => json): Promise<void> {
  return print(`${escapeUnprintable(rewrite(JSON.stringify(result)))}\n`);
}

/** Runs a command whose errors are JSON on stdout, too. Resolves with the exit code. */
export async function withJsonOutput(run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    await printJson({ ok: false, errors: jsonErrors(error) });
    return 1;
  }
}

/** Returns the errors for programs: findings with their places in the config, or with the reason for refusing an answer. */
function jsonErrors(error: unknown) {
  if (error instanceof ConfigErrors) return error.findings.filter(({ level }) => level === 'error').map(findingJson);
  const reason = error instanceof Error && 'reason' in error ? { reason: String(error.reason) } : {};
  return describeError(error).map((message) => ({ message, ...reason }));
}

/** Returns a finding of a config, without its level. */
export function findingJson({ path, message, where }: LocatedFinding) {
  return { message, ...(path && { path }), ...(where && { where }) };
}
