export interface AbortListener {
  handleEvent(): void;
}

/** The part of an `AbortSignal` that whoever waits on a client's behalf needs. */
export interface AbortSource {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: AbortListener): void;
  removeEventListener(type: 'abort', listener: AbortListener): void;
}

/** Tells all who wait. */
export let abort: (signal: ClientSignal) => void;

/** Aborts when the client leaves: an `AbortSignal` at a fiftieth of the cost. */
export class ClientSignal implements AbortSource {
  #aborted = false;
  #listeners: Set<AbortListener> | undefined;

  static {
    abort = (signal) => {
      signal.#aborted = true;
      const listeners = signal.#listeners ?? [];
      signal.#listeners = undefined;
      for (const listener of listeners) notify(listener);
    };
  }

  constructor() {
    // An own property would hide what the kernel reads.
    Object.freeze(this);
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_: 'abort', listener: AbortListener): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: AbortListener): void {
    this.#listeners?.delete(listener);
  }
}

Object.freeze(ClientSignal.prototype);

/** Has somebody told of an abort, also of one that was before. @returns what takes that back. */
export function onAbort(source: AbortSource, tell: () => void): () => void {
  const listener = { handleEvent: tell };
  if (source.aborted) tell();
  else source.addEventListener('abort', listener);
  return () => source.removeEventListener('abort', listener);
}

/** One that fails keeps nobody else from hearing of it. */
function notify(listener: AbortListener): void {
  try {
    listener.handleEvent();
  } catch {
    // It was told; what it makes of that is its own business.
  }
}
