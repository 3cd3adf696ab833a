import { getHeapStatistics } from 'node:v8';

const OPTION = /--max[-_]old[-_]space[-_]size=(\d+)/g;

/**
 * Returns the bytes at which the heap is full. V8's figure includes the room for young objects. Where an option limits the old
 * generation, the process ends at that limit: with 64 MiB it is little more than half of V8's figure.
 */
export function heapLimit(): number {
  const { heap_size_limit: named } = getHeapStatistics();
  // The last option counts, and options of the command line come after those of the variable.
  const [, mebibytes] = [...[process.env.NODE_OPTIONS, ...process.execArgv].join(' ').matchAll(OPTION)].at(-1) ?? [];
  return Math.min(named, Number(mebibytes ?? Number.POSITIVE_INFINITY) * 2 ** 20);
}
