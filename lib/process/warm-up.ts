/** Milliseconds: by then the port is open, if other plugins start fast, and perhaps nobody has called yet. */
const WARM_UP_DELAY_MS = 100;

/**
 * Does soon after the start what the first request would have to wait for, such as loading a large library. The start does
 * not wait for it. A plugin calls it in its `start`. What fails is left to the request: it has to try again.
 *
 * @param load what keeps its result, and does nothing when it is called again
 */
export function warmUp(load: () => unknown): void {
  const warm = async () => {
    try {
      await load();
    } catch {
      // No file descriptor is left, for one.
    }
  };
  setTimeout(warm, WARM_UP_DELAY_MS).unref();
}
