/** Why an answer was not accepted. */
export type Reason =
  /** The options are no `VerifyOptions`: a mistake of the caller. */
  | 'options'
  /** No signed answer: an error, a pending request, a missing field or one of the wrong shape. */
  | 'malformed'
  /** `rawData` has no canonical JSON text, so nothing can have been signed. */
  | 'raw-data'
  /** `signature` is none that a contract would accept. */
  | 'signature'
  /** Somebody else than the `node` of the answer signed, or something else was signed than what the answer says. */
  | 'signer'
  /** Properly signed, by another address than the one asked for. */
  | 'node'
  /** Another endpoint's answer. */
  | 'endpoint'
  /** Older than `maxAge`. */
  | 'too-old'
  /** From further ahead than `CLOCK_SKEW`. */
  | 'future'
  /** `parameters` were given, and nothing in the answer says what it was asked. */
  | 'receipt-missing'
  /** The receipt is not by the signer, or of another answer. */
  | 'receipt'
  /** The answer to other parameters. */
  | 'request';

/** Ends a check from wherever it fails; never leaves this module. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export function malformed(message: string): Refusal {
  return new Refusal('malformed', message);
}
