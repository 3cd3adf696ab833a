interface AbortListener {
  handleEvent(): void;
}

/** The part of an `AbortSignal` that whoever waits for somebody else needs. */
export interface AbortSource {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: AbortListener): void;
  removeEventListener(type: 'abort', listener: AbortListener): void;
}
