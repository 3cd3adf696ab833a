import { randomUUID } from 'node:crypto';

/**
 * The text of a signed answer on its way through the library. The library would read, check and write it value by value, and a
 * large one would hold others up. Marks that nobody can guess stand in its place, until the message is a text.
 */
export class AnswerText {
  readonly #mark = randomUUID();
  #json: string | undefined;

  /** @param json of an object. @returns what stands for its text, and for itself. */
  put(json: string): { readonly text: string; readonly structuredContent: Readonly<Record<string, unknown>> } {
    this.#json = json;
    return { text: this.#mark, structuredContent: { [this.#mark]: true } };
  }

  /** @param message in which the marks are, if there is an answer. */
  fillIn(message: string): string {
    const json = this.#json;
    if (json === undefined) return message;
    const whole = message.replace(`{"${this.#mark}":true}`, () => json);
    return whole.replace(`"${this.#mark}"`, () => JSON.stringify(json));
  }
}
