/** The facts by which records of requests identify a payment. */
import { ContextKey } from '../../plugins-sdk/index.ts';

/** The identity of a payment. */
export interface PaymentFacts {
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: string;
  readonly payer: string;
  /** The hash of the paying transaction, once it is known. */
  readonly transaction?: string;
  /** The nonce of the payer's authorisation. */
  readonly nonce?: string;
}

/** The payment of a request, for its records. The plugin that takes it sets this, and again when more is known. */
export const payment = new ContextKey<PaymentFacts>('payment', { logged: true });
