import { describeError, print, reserveStdout } from '../service/terminal.ts';
import { escapeUnprintable } from '../service/text.ts';

/** An error of a command, as programs read it. */
interface JsonError {
  readonly message: string;
  /** The place in the config, such as `apis[0].url`. */
  readonly path?: string;
  /** The same place for people: names, and the line of the file. */
  readonly where?: string;
  /** Why an answer was refused, as one word. */
  readonly reason?: string;
}

interface Finding extends JsonError {
  readonly level: string;
}

/** Writes a command's result as one line of JSON. @param rewrite changes its text. */
export function printJson(result: Readonly<Record<string, unknown>>, rewrite = (json: string) => json): Promise<void> {
  return print(`${escapeUnprintable(rewrite(JSON.stringify(result)))}\n`);
}

/** Runs a command whose stdout holds JSON and nothing else, also where it fails. Resolves with the exit code. */
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
  if (hasFindings(error)) return error.findings.filter(({ level }) => level === 'error').map(findingJson);
  const reason = error instanceof Error && 'reason' in error ? { reason: String(error.reason) } : {};
  return describeError(error).map((message) => ({ message, ...reason }));
}

/** A finding of a config, without its level. */
export function findingJson({ path, message, where }: Finding): JsonError {
  return { message, ...(path && { path }), ...(where && { where }) };
}

function hasFindings(error: unknown): error is Error & { readonly findings: readonly Finding[] } {
  return error instanceof Error && 'findings' in error && Array.isArray(error.findings);
}
