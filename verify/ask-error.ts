import type { Reason } from './refusal.ts';

/** Why an operator gave no good answer. */
export type AskReason =
  | Reason
  /** No answer came, or it broke off: an unknown host, nothing that listens, no CORS, a lost connection. */
  | 'unreachable'
  /** No complete answer came in time. */
  | 'timeout'
  /** The operator refused or failed; the message shows its HTTP status. */
  | 'status'
  /** The operator redirects to another address, which the caller did not agree to ask. */
  | 'redirect'
  /** The body has no end, or is far larger than any answer. */
  | 'too-large'
  /** The signed data is no value of the requested type. */
  | 'value'
  /** From {@link askMany}: another answer by this signer already counts. */
  | 'twice'
  /** From {@link askMany}: the value is further from the median than `maxDeviation`. */
  | 'deviation'
  /** From {@link askMany} with `settle: 'all'`: enough others had answered, and this operator took too long. */
  | 'late';

/** Thrown when {@link ask} gets no good answer. */
export class AskError extends Error {
  override readonly name = 'AskError';
  readonly reason: AskReason;

  constructor(reason: AskReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Makes the error for wrong options. */
export function wrongOption(message: string): AskError {
  return new AskError('options', `wrong options: ${message}`);
}
