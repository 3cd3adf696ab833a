import { ConfigErrors, type LocatedFinding } from '../config/findings.ts';
import { describeError, print, reserveStdout } from '../service/terminal.ts';
import { escapeUnprintable } from '../service/text.ts';

/** An error of a command, for programs. */
interface JsonError extends Pick<LocatedFinding, 'message' | 'where'> {
  /** The place in the config, such as `apis[0].url`. */
  readonly path?: string;
  /** The reason for refusing an answer, as one word. */
  readonly reason?: string;
}

/** Writes a command's result as one line of JSON. @param rewrite changes the line before it is written. */
export function printJson(result: Readonly<Record<string, unknown>>, rewrite = (json: string) => json): Promise<void> {
  return print(`${escapeUnprintable(rewrite(JSON.stringify(result)))}\n`);
}

/** Runs a command so that stdout holds only JSON, even if it fails. Resolves with the exit code. */
export async function withJsonOutput(run: () => Promise<number>): Promise<number> {
  reserveStdout();
  try {
    return await run();
  } catch (error) {
    await printJson({ ok: false, errors: jsonErrors(error) });
    return 1;
  }
}

function jsonErrors(error: unknown): readonly JsonError[] {
  if (error instanceof ConfigErrors) return error.findings.filter(({ level }) => level === 'error').map(findingJson);
  const reason = error instanceof Error && 'reason' in error ? { reason: String(error.reason) } : {};
  return describeError(error).map((message) => ({ message, ...reason }));
}

/** Returns a finding of a config, without its level. */
export function findingJson({ path, message, where }: LocatedFinding): JsonError {
  return { message, ...(path && { path }), ...(where && { where }) };
}
