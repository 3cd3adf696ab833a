/** PEM texts. */
export interface ClientTls {
  /** The certificate that the client shows, and those that lead to its authority. */
  readonly cert?: string | undefined;
  /** The private key of that certificate. */
  readonly key?: string | undefined;
  /** The authorities that servers' certificates must be of, in place of those of Node.js. */
  readonly ca?: string | undefined;
}
