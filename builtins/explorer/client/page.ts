import type { PageData } from '../endpoint.ts';
import { ask, type CallOutcome } from './call.ts';
import type { Field } from './fields.ts';
import { type Asked, contentOf } from './request.ts';

/** The expected signer. */
export interface Pin {
  readonly address: string;
  /** Whether a person gave it; at first it is the address that the service states. */
  readonly isOwnChoice: boolean;
}

/** A request that was sent, and its result so far. */
export interface Sent {
  readonly asked: Asked;
  readonly controller: AbortController;
  /** Describes the wait for a person; empty once there is an outcome. */
  readonly progress: string;
  readonly outcome?: CallOutcome;
  /** The answer, which a person may have edited. */
  readonly text: string;
}

/** The state of the page, which is stored nowhere else. Each change redraws the page. */
export class Page {
  readonly data: PageData;
  pin: Pin;
  /** Faults by the keys of their fields. */
  readonly problems = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  readonly #sent = new Map<string, Sent>();
  readonly #draw: (page: Page) => void;

  constructor(data: PageData, draw: (page: Page) => void) {
    this.data = data;
    this.pin = { address: data.node, isOwnChoice: false };
    this.#draw = draw;
  }

  /** Pins an address that a person expects as signer. */
  expect(address: string): void {
    this.pin = { address, isOwnChoice: true };
    this.#draw(this);
  }

  readonly textOf = ({ key }: Field): string => this.#texts.get(key) ?? '';

  type({ key }: Field, text: string): void {
    this.#texts.set(key, text);
    this.problems.delete(key);
    this.#draw(this);
  }

  /** Checks all fields and shows their faults. @returns whether all are right */
  areRight(fields: readonly Field[]): boolean {
    for (const field of fields) {
      const content = contentOf(field, this.textOf(field));
      if ('problem' in content) this.problems.set(field.key, content.problem);
      else this.problems.delete(field.key);
    }
    this.#draw(this);
    return !fields.some(({ key }) => this.problems.has(key));
  }

  /** Returns the last request of a key. @param key allows one request at a time. */
  sentFor(key: string): Sent | undefined {
    return this.#sent.get(key);
  }

  async send(key: string, asked: Asked): Promise<void> {
    this.#sent.get(key)?.controller.abort();
    const controller = new AbortController();
    const wait = (progress: string) => this.#show(key, { asked, controller, progress, text: '' });
    wait('Waiting for the answer');
    const outcome = await ask(asked, controller.signal, wait);
    // If not, a later request has replaced this one.
    if (this.#sent.get(key)?.controller === controller)
      this.#show(key, { asked, controller, progress: '', outcome, text: outcome.text });
  }

  /** Changes the answer's text, so that a person sees what the signature protects. */
  edit(key: string, text: string): void {
    const sent = this.#sent.get(key);
    if (sent !== undefined) this.#show(key, { ...sent, text });
  }

  #show(key: string, sent: Sent): void {
    this.#sent.set(key, sent);
    this.#draw(this);
  }
}
