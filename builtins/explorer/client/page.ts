import type { PageData } from '../data.ts';
import { ask, type CallOutcome } from './call.ts';
import type { Field } from './fields.ts';
import { type Asked, contentOf } from './request.ts';

/** The address that must have signed. */
export interface Pin {
  readonly address: string;
  /** Whether a person gave it; at first it is what the service says of itself. */
  readonly isOwnChoice: boolean;
}

/** A request that was sent, and what came of it so far. */
export interface Sent {
  readonly asked: Asked;
  readonly controller: AbortController;
  /** What there is to wait for; empty once there is an outcome. */
  readonly progress: string;
  readonly outcome?: CallOutcome;
  /** The answer, as a person may have changed it. */
  readonly text: string;
}

/** All that a person has done on the page; it is kept nowhere else. Each change draws the page anew. */
export class Page {
  readonly data: PageData;
  pin: Pin;
  /** By the key of a field. */
  readonly problems = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  readonly #sent = new Map<string, Sent>();
  readonly #draw: (page: Page) => void;

  constructor(data: PageData, draw: (page: Page) => void) {
    this.data = data;
    this.pin = { address: data.node, isOwnChoice: false };
    this.#draw = draw;
  }

  /** Has a person expect that an address has signed. */
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

  /** Has each field say what is wrong with it. @returns whether all are right */
  areRight(fields: readonly Field[]): boolean {
    for (const field of fields) {
      const content = contentOf(field, this.textOf(field));
      if ('problem' in content) this.problems.set(field.key, content.problem);
      else this.problems.delete(field.key);
    }
    this.#draw(this);
    return !fields.some(({ key }) => this.problems.has(key));
  }

  /** @param key one request at a time is under way for each. */
  sentFor(key: string): Sent | undefined {
    return this.#sent.get(key);
  }

  async send(key: string, asked: Asked): Promise<void> {
    this.#sent.get(key)?.controller.abort();
    const controller = new AbortController();
    const wait = (progress: string) => this.#show(key, { asked, controller, progress, text: '' });
    wait('Waiting for the answer');
    const outcome = await ask(asked, controller.signal, wait);
    // Otherwise a later request took its place.
    if (this.#sent.get(key)?.controller === controller)
      this.#show(key, { asked, controller, progress: '', outcome, text: outcome.text });
  }

  /** Changes the answer, so that a person sees what the signature is good for. */
  edit(key: string, text: string): void {
    const sent = this.#sent.get(key);
    if (sent !== undefined) this.#show(key, { ...sent, text });
  }

  #show(key: string, sent: Sent): void {
    this.#sent.set(key, sent);
    this.#draw(this);
  }
}
