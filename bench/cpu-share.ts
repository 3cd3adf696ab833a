import { readFile } from 'node:fs/promises';

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Part of the program that a stack's innermost frame of its own belongs to. */
function partOf({ functionName, url }: ProfileNode['callFrame']): string | undefined {
  if (functionName === '(garbage collector)') return 'garbage collector';
  if (functionName === '(idle)') return 'idle';
  const [, builtin] = /\/dist\/builtins\/([\w-]+)/.exec(url) ?? [];
  if (builtin !== undefined && builtin !== 'index') return `builtins/${builtin}`;
  if (url.includes('/dist/kernel/')) return 'kernel';
  if (url.includes('/dist/http/')) return 'http';
  if (url.includes('/dist/plugins-sdk/public-hooks')) return 'public hooks';
  if (url.includes('/dist/cli/') || url.includes('/node_modules/pino')) return 'log';
  if (/\/node_modules\/(?:koa|@koa)\b/.test(url)) return 'koa and router';
  return undefined;
}

/** Shares of the busy CPU time by part of the program, largest first. What no part called is node's own: sockets, HTTP, timers. */
export async function cpuShares(file: string): Promise<ReadonlyArray<readonly [part: string, share: number]>> {
  const { nodes, samples, timeDeltas }: CpuProfile = JSON.parse(await readFile(file, 'utf8'));
  const parts = new Map<number, string>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const stack = nodes.slice(0, 1).map((node) => ({ node, inherited: 'node' }));
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const part = partOf(entry.node.callFrame) ?? entry.inherited;
    parts.set(entry.node.id, part);
    for (const id of entry.node.children ?? []) {
      const child = byId.get(id);
      if (child !== undefined) stack.push({ node: child, inherited: part });
    }
  }
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const part = parts.get(id) ?? 'node';
    times.set(part, (times.get(part) ?? 0) + (timeDeltas[i] ?? 0));
  });
  times.delete('idle');
  const busy = [...times.values()].reduce((sum, time) => sum + time, 0);
  return [...times].map(([part, time]) => [part, time / busy] as const).sort(([, a], [, b]) => b - a);
}
