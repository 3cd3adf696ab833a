/**
 * Makes a clock that never goes back. It counts the whole milliseconds by which `now` has moved forward since the clock
 * was made. A step back of the source is skipped, so that it prolongs no wait.
 * @param now - the source in milliseconds; by default the process's own monotonic clock.
 */
export function steadyClock(now: () => number = () => performance.now()): () => number {
  let last = Math.floor(now());
  let elapsed = 0;
  return () => {
    const time = Math.floor(now());
    elapsed += Math.max(0, time - last);
    last = time;
    return elapsed;
  };
}
