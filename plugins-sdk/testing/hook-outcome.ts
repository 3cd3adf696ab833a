import { inspect, types } from 'node:util';
import { errorForLog, isRefusal, type Refusal } from '../../kernel/refusal.ts';
import type { Complaint, HookOutcome } from './inputs.ts';

export function changed<T>(value: T | undefined, given: unknown): HookOutcome<T> {
  return value === undefined || value === given ? { passed: true } : { value };
}

/** Tests compare status and message: the rest is there for who asks for it. */
export function refused({ status, message, headers, body }: Refusal): HookOutcome<never> {
  const outcome = { status, message, headers, body };
  for (const name of ['headers', 'body']) Object.defineProperty(outcome, name, { enumerable: false });
  return { refused: outcome };
}

export function complaint(hook: string, requestId: string, detail: string): Complaint {
  const [message = ''] = detail.split('\n', 1);
  return { hook, requestId, message, detail };
}

export function errorText(error: unknown): string {
  if (isRefusal(error)) return error.reason ?? error.message;
  return types.isNativeError(error) ? errorForLog(error) : inspect(error);
}
