import type { Reason } from './refusal.ts';

/** Why there is no good answer of an operator. */
export type AskReason =
  | Reason
  /** Nothing came, or it broke off: no such host, nothing that listens, no CORS, a lost connection. */
  | 'unreachable'
  /** No whole answer came in time. */
  | 'timeout'
  /** The operator refused, or failed: see its HTTP status in the message. */
  | 'status'
  /** The operator sends its clients elsewhere, where nobody has agreed to ask. */
  | 'redirect'
  /** The body has no end, or is far larger than any answer. */
  | 'too-large'
  /** The signed data is no value of the wanted type. */
  | 'value'
  /** Of {@link askMany}: another answer by this signer counts already. */
  | 'twice'
  /** Of {@link askMany}: further from the median than `maxDeviation`. */
  | 'deviation'
  /** Of {@link askMany} with `settle: 'all'`: enough others had answered, and this one took too long. */
  | 'late';

/** Why {@link ask} has no good answer. */
export class AskError extends Error {
  override readonly name = 'AskError';
  readonly reason: AskReason;

  constructor(reason: AskReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export function wrongOption(message: string): AskError {
  return new AskError('options', `wrong options: ${message}`);
}
