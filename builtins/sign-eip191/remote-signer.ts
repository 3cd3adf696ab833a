import { noSlotText, Semaphore } from '../../lib/bounded/semaphore.ts';
import { recoverFromHash } from '../../lib/eth/eip191.ts';
import { personalStatement, receiptStatement } from '../../lib/eth/statements.ts';
import { errorText } from '../../lib/text.ts';
import { LATE, withTimeout } from '../../lib/time.ts';
import { type Exchange, type Hex, type Log, Refusal } from '../../plugins-sdk/index.ts';
import type { Meters } from '../../plugins-sdk/observe.ts';
import type { SignerInUse, SignerRole, Statement } from '../../plugins-sdk/signing.ts';
import { SignerHealth } from './signer-health.ts';

const OUTCOMES = ['signed', 'failed', 'busy'] as const;
type SigningOutcome = (typeof OUTCOMES)[number];

type Measured = (signer: SignerRole, outcome: SigningOutcome, milliseconds: number) => void;

const ZERO: Hex = `0x${'0'.repeat(64)}`;
/** Statements for probes. No answer has these digests: an endpoint ID is a hash, and never zero. */
const PROOFS = {
  answer: personalStatement(new Uint8Array(32)),
  receipt: receiptStatement({ endpointId: ZERO, requestHash: ZERO, dataHash: ZERO, timestamp: 0 }),
};

/** Most characters of a failure's reason in the log: a signer's own text may be of any length. */
const LONGEST_REASON = 500;

/** A signer outside this process. Its time and its concurrency are bounded, and each of its signatures is checked. */
export class RemoteSigner {
  readonly address: Hex;
  readonly #use: SignerInUse;
  readonly #slots: Semaphore;
  readonly #measured: Measured;
  readonly #health: SignerHealth;
  readonly #provenBy: readonly Statement[];

  /** @param withReceipts whether it signs receipts, too. */
  constructor(use: SignerInUse, withReceipts: boolean, log: Log, measured: Measured) {
    this.address = use.signer.address;
    this.#use = use;
    this.#slots = new Semaphore(use.concurrency);
    this.#measured = measured;
    this.#provenBy = withReceipts ? [PROOFS.answer, PROOFS.receipt] : [PROOFS.answer];
    this.#health = new SignerHealth({ signer: this.#place, log, probe: () => this.#prove() });
  }

  /** Whether the signer signs, as far as is known. */
  get isAvailable(): boolean {
    return this.#health.isAvailable;
  }

  /** The signer's config path and type, for messages. */
  get #place(): string {
    const { role, type } = this.#use;
    return `${role === 'next' ? 'settings.signer.next' : 'settings.signer'} (${type})`;
  }

  /** Has statements signed. @throws Refusal 503 if the signer is busy, 502 for no signature or one by another account. */
  sign(statements: readonly Statement[], { signal }: Exchange): Promise<readonly Hex[]> {
    return Promise.all(statements.map((statement) => this.#one(statement, signal)));
  }

  /** Checks that the signer signs, and watches it from then on. @throws Error that says what is wrong. */
  async start(): Promise<void> {
    await this.#prove().catch((error: unknown) => {
      throw new Error(`${this.#place} does not sign: ${reasonOf(error)}`);
    });
    this.#health.start();
  }

  stop(): void {
    this.#health.stop();
  }

  /** Has the signer sign statements that are no answer. @throws Error */
  async #prove(): Promise<void> {
    const { signal } = new AbortController();
    await Promise.all(this.#provenBy.map((statement) => this.#signed(statement, signal)));
  }

  async #one(statement: Statement, signal: AbortSignal): Promise<Hex> {
    const began = performance.now();
    const { timeout, type, role } = this.#use;
    const release = await this.#slots.acquire(timeout, signal);
    if (release === undefined) {
      if (!signal.aborted) this.#measured(role, 'busy', performance.now() - began);
      const why = signal.aborted ? reasonOf(signal.reason) : noSlotText(timeout);
      throw new Refusal(503, 'Server busy', { reason: `signer "${type}": ${why}`, failureClass: 'busy' });
    }
    // A signer that hangs keeps its slot: more requests would not help.
    const signature = await this.#signed(statement, signal, release, began).catch((error: unknown) => {
      this.#measured(role, 'failed', performance.now() - began);
      // A signature that was aborted because its client left says nothing about the signer.
      if (!signal.aborted) this.#health.failed();
      const reason = `signer "${type}": ${reasonOf(error)}`;
      throw new Refusal(502, 'Signing failed', { reason, failureClass: 'signer' });
    });
    this.#measured(role, 'signed', performance.now() - began);
    this.#health.succeeded();
    return signature;
  }

  /** Gets one signature, and checks who made it. @throws Error */
  async #signed(
    statement: Statement,
    signal: AbortSignal,
    release = () => undefined as void,
    began = performance.now(),
  ) {
    const { signer, timeout } = this.#use;
    const late = new AbortController();
    const work = (async () => signer.sign(statement, AbortSignal.any([signal, late.signal])))().finally(release);
    const left = Math.max(timeout - (performance.now() - began), 1);
    const signature = await withTimeout(left, work);
    if (signature === LATE) {
      late.abort();
      throw new Error(`no signature within ${timeout} ms`);
    }
    const by = recoverFromHash(statement.hash, signature);
    if (by !== this.address) throw new Error(`the signature is by ${by}, not by ${this.address}`);
    return signature;
  }
}

function reasonOf(error: unknown): string {
  return errorText(error).slice(0, LONGEST_REASON);
}

/** Registers the metrics of signers outside this process, if there are any. @param isAvailable whether all of them sign. */
export function signingMeters(meters: Meters, outside: readonly SignerInUse[], isAvailable: () => boolean): Measured {
  if (outside.length === 0) return () => undefined;
  const outcomes = meters.counter({
    name: 'remote_signatures_total',
    help: 'Signatures asked of signers outside the process: signed, failed, or busy: too many were asked for already',
    labels: ['signer', 'outcome'],
    initial: outside.flatMap(({ role: signer }) => OUTCOMES.map((outcome) => ({ signer, outcome }))),
  });
  const seconds = meters.histogram({
    name: 'remote_signature_duration_seconds',
    help: 'Duration of signatures by signers outside the process, the wait for a slot included',
    labels: ['signer'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  });
  const available = { name: 'signers_available', help: 'Whether all signers outside the process sign: 1 or 0' };
  meters.gauge({ ...available, across: 'min' }, () => (isAvailable() ? 1 : 0));
  return (signer, outcome, milliseconds) => {
    outcomes({ signer, outcome }, 1);
    seconds({ signer }, milliseconds / 1000);
  };
}
