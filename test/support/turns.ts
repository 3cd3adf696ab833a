import { readFileSync } from 'node:fs';

const file = `/proc/self/task/${process.pid}/schedstat`;

/** Milliseconds of CPU of the main thread; where the system does not tell, of the process. */
function used(): number {
  try {
    return Number(readFileSync(file, 'latin1').split(' ')[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

export interface Cost<T> {
  readonly result: T;
  /** Milliseconds of CPU of the whole process. */
  readonly cpu: number;
  /** The longest turn of the event loop, in milliseconds of CPU of the main thread. */
  readonly longestTurn: number;
  readonly turns: number;
}

/** Does work, and measures what it takes of the processor. */
export async function costOf<T>(work: () => Promise<T>): Promise<Cost<T>> {
  let isOver = false;
  let longestTurn = 0;
  let turns = 0;
  let last = used();
  const turn = () => {
    const now = used();
    longestTurn = Math.max(longestTurn, now - last);
    last = now;
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  const before = process.cpuUsage();
  setImmediate(turn);
  const result = await work();
  const { user, system } = process.cpuUsage(before);
  turn();
  isOver = true;
  return { result, cpu: (user + system) / 1000, longestTurn, turns };
}
