interface Stoppable {
  stop(): Promise<unknown>;
}
interface Closable {
  close(): Promise<unknown>;
}

/** Stops what a test or a suite has started, one after the other; what has not come to be started is `undefined`. */
export async function stopAll(...started: readonly (Stoppable | Closable | undefined)[]): Promise<void> {
  for (const each of started) await (each !== undefined && 'stop' in each ? each.stop() : each?.close());
}
