import { readFile } from 'node:fs/promises';

export interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

/** As V8 writes it; times in microseconds. */
export interface CpuProfile {
  readonly startTime: number;
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
  if (url.includes('/dist/plugins-sdk/hooks/')) return 'public hooks';
  if (url.includes('/dist/cli/')) return 'log';
  if (/\/node_modules\/(?:koa|@koa)\b/.test(url)) return 'koa and router';
  return undefined;
}

/** @param from moment of `process.hrtime.bigint()`: samples before it are left out, such as those of the start. */
export async function readProfile(file: string, from = 0n): Promise<CpuProfile> {
  return since(JSON.parse(await readFile(file, 'utf8')), Number(from / 1000n));
}

/** A profile without its samples before a moment. @param from microseconds of the clock of the profile. */
export function since(profile: CpuProfile, from: number): CpuProfile {
  let now = profile.startTime;
  const first = profile.timeDeltas.findIndex((delta) => {
    now += delta;
    return now >= from;
  });
  const { samples, timeDeltas } = profile;
  return { ...profile, samples: samples.slice(first), timeDeltas: timeDeltas.slice(first) };
}

/** Sums of the samples' times by what is said of their nodes. */
function timesBy({ nodes, samples, timeDeltas }: CpuProfile, keys: ReadonlyMap<number, string>): Map<string, number> {
  const times = new Map<string, number>();
  samples.forEach((id, i) => {
    const key = keys.get(id) ?? nodes[0]?.callFrame.functionName ?? '';
    times.set(key, (times.get(key) ?? 0) + (timeDeltas[i] ?? 0));
  });
  return times;
}

/** Shares of the busy CPU time by part of the program, largest first. What no part called is node's own: sockets, HTTP, timers. */
export function cpuShares(profile: CpuProfile): ReadonlyArray<readonly [part: string, share: number]> {
  const { nodes } = profile;
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
  const times = timesBy(profile, parts);
  times.delete('idle');
  const busy = [...times.values()].reduce((sum, time) => sum + time, 0);
  return [...times].map(([part, time]) => [part, time / busy] as const).sort(([, a], [, b]) => b - a);
}

/** A function by its name and file, the same in two builds wherever these are. */
function functionOf({ functionName, url }: ProfileNode['callFrame']): string {
  const file = url.replace(/^.*\/(?:dist|node_modules)\//, '');
  return `${functionName || '(anonymous)'}${file === '' ? '' : ` ${file}`}`;
}

/** What one build spends in a function more than another, in microseconds a request. */
export interface Difference {
  readonly name: string;
  readonly before: number;
  readonly now: number;
}

/** Differences of the time spent in functions themselves, the largest first. @param requests that each profile is of. */
export function differences(before: CpuProfile, now: CpuProfile, requests: number): Difference[] {
  const [earlier, later] = [before, now].map((profile) => {
    return timesBy(profile, new Map(profile.nodes.map(({ id, callFrame }) => [id, functionOf(callFrame)])));
  });
  const each = (times: ReadonlyMap<string, number> | undefined, name: string) => (times?.get(name) ?? 0) / requests;
  const names = new Set([...(earlier?.keys() ?? []), ...(later?.keys() ?? [])]);
  names.delete('(idle)');
  names.delete('(program)');
  const size = ({ before, now }: Difference) => Math.abs(now - before);
  return [...names]
    .map((name) => ({ name, before: each(earlier, name), now: each(later, name) }))
    .sort((a, b) => size(b) - size(a));
}
