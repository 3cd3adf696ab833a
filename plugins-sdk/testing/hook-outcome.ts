import { inspect, types } from 'node:util';
import { errorForLog, type Refusal } from '../../kernel/refusal.ts';
import type { Complaint, HookOutcome } from './inputs.ts';

/** Returns the outcome of a stage: a new value, or `passed` if it is absent or the given one. */
export function changed<T>(value: T | undefined, given: unknown): HookOutcome<T> {
  return value === undefined || value === given ? { passed: true } : { value };
}

/** Returns the outcome of a refusal. `deepEqual` compares its status and message alone: headers and body are not enumerable. */
export function refused({ status, message, headers, body }: Refusal): HookOutcome<never> {
  const outcome = { status, message, headers, body };
  for (const name of ['headers', 'body']) Object.defineProperty(outcome, name, { enumerable: false });
  return { refused: outcome };
}

/** Makes a complaint, whose message is the first line of its detail. */
export function complaint(hook: string, requestId: string, detail: string): Complaint {
  const [message = ''] = detail.split('\n', 1);
  return { hook, requestId, message, detail };
}

/** Returns the text of an error, for complaints. */
export function errorText(error: unknown): string {
  return types.isNativeError(error) ? errorForLog(error) : inspect(error);
}
