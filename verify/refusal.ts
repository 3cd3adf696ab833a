/** Why an answer was not accepted. */
export type Reason =
  /** The options are no `VerifyOptions`: a mistake of the caller. */
  | 'options'
  /** The response is no signed answer but an error or a pending request, or a field is missing or of the wrong shape. */
  | 'malformed'
  /** `rawData` has no canonical JSON text, so nothing can have been signed. */
  | 'raw-data'
  /** A contract would not accept `signature`. */
  | 'signature'
  /** The `node` of the answer did not sign it, or the answer was changed after the signing. */
  | 'signer'
  /** The signature is valid, but not by the expected address. */
  | 'node'
  /** The answer is of another endpoint. */
  | 'endpoint'
  /** The answer is older than `maxAge`. */
  | 'too-old'
  /** The timestamp is further in the future than `CLOCK_SKEW`. */
  | 'future'
  /** `parameters` were given, but the answer has no receipt. */
  | 'receipt-missing'
  /** The receipt is not by the signer, or is of another answer. */
  | 'receipt'
  /** The answer is to other parameters. */
  | 'request';

/** Thrown to end a failed check. `verifyResponse` returns it as a result and never throws it. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Makes the refusal of a response that is no signed answer. */
export function malformed(message: string): Refusal {
  return new Refusal('malformed', message);
}
