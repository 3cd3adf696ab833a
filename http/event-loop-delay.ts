/** Milliseconds between two looks at the event loop. */
const LOOK = 100;

/** Watches how late the event loop is. */
export class EventLoopDelay {
  /** Milliseconds by which it was late at the last look. */
  value = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(now: () => number) {
    let due = now() + LOOK;
    this.#timer = setInterval(() => {
      const time = now();
      this.value = time - due;
      due = time + LOOK;
    }, LOOK).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
