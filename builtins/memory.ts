import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { heapLimit } from '../lib/process/heap-limit.ts';
import { definePlugin, type Log, StateKey } from '../plugins-sdk/index.ts';

/** Milliseconds between two looks. */
const LOOK_MS = 2000;
/** The part of a limit from which a warning says that it is near, and below which the warning is over. */
const NEAR = 0.9;
const OVER = 0.8;

/** Where the kernel says what a group of processes uses, by version of cgroup. What it could drop from `cache` at any time does not count. */
const VERSIONS = [
  { group: /^0::(.*)$/m, root: '/sys/fs/cgroup', used: 'memory.current', cache: /^inactive_file (\d+)$/m },
  {
    group: /^\d+:memory:(.*)$/m,
    root: '/sys/fs/cgroup/memory',
    used: 'memory.usage_in_bytes',
    cache: /^total_inactive_file (\d+)$/m,
  },
];

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** What reads the bytes that the cgroup of this process uses; nothing where the system does not tell. */
function findGroup(): (() => number | undefined) | undefined {
  const groups = read('/proc/self/cgroup') ?? '';
  for (const { group, root, used, cache } of VERSIONS) {
    const [, path = ''] = group.exec(groups) ?? [];
    // In a container the path may be that of the host, while the root is the container's own.
    const folder = [root + path, root].find((candidate) => read(`${candidate}/${used}`) !== undefined);
    if (folder === undefined) continue;
    return () => {
      const bytes = read(`${folder}/${used}`);
      const [, dropped = 0] = cache.exec(read(`${folder}/memory.stat`) ?? '') ?? [];
      return bytes === undefined ? undefined : Number(bytes) - Number(dropped);
    };
  }
  return undefined;
}

type Said = Readonly<Record<string, unknown>>;

/** @returns what is told of each look, and has it said once when the limit is near, and once when it no longer is. */
function once(isNear: (fields: Said) => void, isOver: (fields: Said) => void): (used: number, limit: number) => void {
  let said = false;
  return (used, limit) => {
    if (said ? used >= OVER * limit : used <= NEAR * limit) return;
    said = !said;
    const [usedMiB, limitMiB] = [used, limit].map((bytes) => Math.round(bytes / 2 ** 20));
    (said ? isNear : isOver)({ usedMiB, limitMiB });
  };
}

class MemoryWatch {
  readonly #log: Log;
  readonly #group = findGroup();
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  get used(): number {
    return this.#group?.() ?? process.memoryUsage.rss();
  }

  /** That of the cgroup, or else all that the machine has. */
  get limit(): number {
    return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  }

  start(): void {
    const log = this.#log;
    const memory = once(
      (fields) => log.warn('memory is nearly used up: the system ends a process when it is', fields),
      (fields) => log.info('memory is no longer nearly used up', fields),
    );
    const heap = once(
      (fields) => log.warn('the heap is nearly full: the process ends when it is', fields),
      (fields) => log.info('the heap is no longer nearly full', fields),
    );
    this.#timer ??= setInterval(() => {
      memory(this.used, this.limit);
      heap(process.memoryUsage().heapUsed, heapLimit());
    }, LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

const kept = new StateKey<MemoryWatch>('memory');

/** Says when the memory that the service may use, or the heap of V8, is nearly used up. A process that runs out of one ends without a word. */
export const memory = definePlugin({
  name: 'memory',
  budget: 'none',
  setup({ log, meters, states }) {
    const watch = states.keep(kept, '', () => new MemoryWatch(log));
    const used = {
      name: 'memory_used_bytes',
      help: 'Memory that the cgroup uses, without cached files; else this process',
    };
    meters.gauge({ ...used, across: 'max' }, () => watch.used);
    const limit = { name: 'memory_limit_bytes', help: 'Limit of the cgroup, or the memory of the machine' };
    meters.gauge({ ...limit, across: 'max' }, () => watch.limit);
    return { start: () => watch.start() };
  },
});
