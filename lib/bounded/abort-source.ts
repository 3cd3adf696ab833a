/** The part of an `AbortSignal` that is needed to stop waiting. */
export type AbortSource = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>;
