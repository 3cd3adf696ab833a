import { cpus, totalmem } from 'node:os';

/** CPU of one build for a request by that of the release, beyond which it is slower. */
const LIMIT = 1.08;
/** Of five rounds four must say that it is slower at all: a few rounds on a busy machine move a median. */
const DISSENT = 0.2;

/** What one server did in one turn; latencies in milliseconds, `cpu` in microseconds a request. */
export interface Turn {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly cpu: number;
}

/** What was measured, and a turn for each round. */
export interface Turns {
  readonly name: string;
  readonly turns: readonly Turn[];
}

/** The value below which a part of all values is, between neighbours in proportion. @param part from 0 to 1. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = part * (sorted.length - 1);
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Each value by the one of the same round. */
export function ratios(values: readonly number[], by: readonly number[]): number[] {
  return values.map((value, i) => value / (by[i] ?? Number.NaN));
}

/** The median, and where eight of ten values are. */
export function spread(values: readonly number[]): string {
  const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => quantile(values, part).toFixed(2));
  return `${middle} (${low}–${high})`;
}

/** @param ratios of each round: CPU for a request by that of the release in the same round. */
export function isSlower(ratios: readonly number[]): boolean {
  return median(ratios) > LIMIT && quantile(ratios, DISSENT) > 1;
}

/** A table in Markdown. */
export function table(header: readonly string[], rows: ReadonlyArray<readonly (string | number)[]>): string {
  return [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll(' --- ', '---');
}

/** Groups of what took turns: medians, and ratios to the first of the same group in the same round. Above 1 is better. */
export function comparison(groups: ReadonlyArray<readonly Turns[]>): string {
  const header = ['work', 'requests/s', 'ratio', 'CPU µs a request', 'ratio', 'p50 ms', 'p99 ms'];
  return table(
    header,
    groups.flatMap((group) => group.map((one, i) => row(one, i === 0 ? undefined : group[0]))),
  );
}

function row({ name, turns }: Turns, against: Turns | undefined): string[] {
  const all = (key: keyof Turn, of = turns) => of.map((turn) => turn[key]);
  const typical = (key: keyof Turn) => median(all(key)).toFixed(0);
  const text = (of: () => number[]) => (against === undefined ? '' : spread(of()));
  const speed = text(() => ratios(all('perSecond'), all('perSecond', against?.turns)));
  const cpu = text(() => ratios(all('cpu', against?.turns), all('cpu')));
  return [name, typical('perSecond'), speed, typical('cpu'), cpu, typical('p50'), typical('p99')];
}

/** What was measured where, when and how often. */
export function circumstances({ rounds, requests }: { readonly rounds: number; readonly requests: number }): string {
  const model = cpus()[0]?.model ?? 'a processor without a name';
  const memory = Math.round(totalmem() / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  return `${model}, ${cpus().length} cores, ${memory} GiB, Node ${process.version}, ${day}; ${rounds} rounds of ${requests} requests.`;
}
