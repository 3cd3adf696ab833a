type Listener = Parameters<AbortSignal['addEventListener']>[1];

/**
 * An abort controller for signals that plugins get. Node ends the process when a listener of an abort throws or rejects, and
 * clients abort signals whenever they leave. An error of a listener is dropped here.
 */
export function createAbortController(): AbortController {
  const controller = new AbortController();
  const { signal } = controller;
  const safe = new WeakMap<object, (event: Event) => void>();
  const wrap = (listener: Listener) => {
    const known = safe.get(listener);
    if (known !== undefined) return known;
    const wrapped = (event: Event) => {
      try {
        const result: unknown =
          typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event);
        Promise.resolve(result).catch(() => undefined);
      } catch {
        // What it makes of being told is its own business.
      }
    };
    safe.set(listener, wrapped);
    return wrapped;
  };
  const isListener = (listener: unknown): listener is Listener =>
    typeof listener === 'function' || (typeof listener === 'object' && listener !== null);
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (type: string, listener: unknown, options?: EventListenerOptions | boolean) =>
    addEventListener.call(signal, type, isListener(listener) ? wrap(listener) : () => undefined, options);
  signal.removeEventListener = (type: string, listener: unknown, options?: EventListenerOptions | boolean) =>
    removeEventListener.call(signal, type, isListener(listener) ? wrap(listener) : () => undefined, options);
  return controller;
}
