import { getHeapStatistics } from 'node:v8';

const OPTION = /--max[-_]old[-_]space[-_]size=(\d+)/g;

/**
 * Bytes at which the heap is full. What V8 names is more, by the room for young objects: where an option sets the limit of the others,
 * the process ends at that. Of a heap of 64 MiB this is little more than half of what V8 names.
 */
export function heapLimit(): number {
  const { heap_size_limit: named } = getHeapStatistics();
  // The last one counts, and those of the command line after those of the variable.
  const [, mebibytes] = [...[process.env.NODE_OPTIONS, ...process.execArgv].join(' ').matchAll(OPTION)].at(-1) ?? [];
  return Math.min(named, Number(mebibytes ?? Number.POSITIVE_INFINITY) * 2 ** 20);
}
