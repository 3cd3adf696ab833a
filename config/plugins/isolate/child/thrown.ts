import type { Thrown } from '../protocol.ts';

/** Text of anything that was thrown; nothing for nothing. It may be hostile to being read. */
export function errorText(error: unknown): string | undefined {
  if (error === undefined || error === null) return undefined;
  try {
    return error instanceof Error ? String(error.stack ?? error.message) : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

/** What a plugin threw before it was ready. */
export function thrown(error: unknown): Thrown {
  const stack = errorText(error) ?? String(error);
  try {
    const message = error instanceof Error ? error.message || error.name : String(error);
    const { code } = Object(error) as { readonly code?: unknown };
    if (code === 'ERR_DLOPEN_DISABLED') return { message, stack, problem: ADDON };
    const issues = issuesOf(error);
    return issues === undefined ? { message, stack } : { message, stack, issues };
  } catch {
    return { message: 'an error that cannot be shown', stack };
  }
}

const ADDON = 'uses a native addon and cannot be isolated: the process of an isolated plugin may load none';

function issuesOf(error: unknown): Thrown['issues'] {
  const { issues } = Object(error) as { readonly issues?: unknown };
  if (!Array.isArray(issues)) return undefined;
  return issues.map((issue: unknown) => {
    const { path, message } = Object(issue) as { readonly path?: unknown; readonly message?: unknown };
    const steps = Array.isArray(path) ? path.map((step) => (typeof step === 'number' ? step : String(step))) : [];
    return { path: steps, message: String(message) };
  });
}
