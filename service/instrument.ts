import type { Instrument, MeterSpec } from '../plugins-sdk/meters.ts';

const ACROSS: readonly string[] = ['sum', 'min', 'max', 'average'];

/** Buckets of a histogram: each is a series. */
const MOST_BUCKETS = 100;

export type Kind = 'counter' | 'histogram' | 'gauge';

export interface Described {
  readonly kind: Kind;
  readonly instrument: Instrument;
}

/** What Prometheus's text format makes of a histogram, besides its name. */
const PARTS: Readonly<Record<Kind, readonly string[]>> = {
  counter: [],
  gauge: [],
  histogram: ['_bucket', '_sum', '_count'],
};

/** All names of an instrument in the text format. */
export function namesOf({ kind, instrument: { name } }: Described): string[] {
  return [name, ...PARTS[kind].map((part) => name + part)];
}

export function isSame(one: Described, other: Described): boolean {
  return described(one) === described(other);
}

export function described({ kind, instrument: { name, labels = [], buckets = [] } }: Described): string {
  const parts = { labels, buckets };
  const told = Object.entries(parts).flatMap(([part, values]) =>
    values.length === 0 ? [] : `${part} ${values.join(', ')}`,
  );
  return `the ${kind} "${name}"${told.length === 0 ? '' : ` with the ${told.join(' and the ')}`}`;
}

/** A copy that nobody can change. @throws Error that says what is wrong with it. */
export function instrumentOf(kind: Kind, { name, help, labels = [], ...rest }: MeterSpec, series: number): Instrument {
  const { buckets, across } = rest;
  const wrong = (what: string) => new Error(`the instrument "${name}" ${what}`);
  if (!isSnakeCase(name)) throw new Error(`the name of the instrument "${name}" is not in snake case`);
  if (typeof help !== 'string' || help === '') throw wrong('has no help');
  const odd = labels.find((label, i) => !isSnakeCase(label) || label === 'le' || labels.indexOf(label) < i);
  if (odd !== undefined) throw wrong(`cannot have a label "${odd}"`);
  if (kind === 'gauge' && labels.length > 0) throw wrong('is a gauge, which has no labels');
  if (buckets?.some((bound, i) => !Number.isFinite(bound) || bound <= (buckets[i - 1] ?? Number.NEGATIVE_INFINITY))) {
    throw wrong('has buckets that do not ascend');
  }
  if (buckets !== undefined && buckets.length > MOST_BUCKETS) throw wrong(`has more than ${MOST_BUCKETS} buckets`);
  if (across !== undefined && !ACROSS.includes(across)) throw wrong(`has no "across" of ${ACROSS.join(', ')}`);
  const copy = { name, help, labels: Object.freeze([...labels]), series, ...(across && { across }) };
  return Object.freeze(buckets === undefined ? copy : { ...copy, buckets: Object.freeze([...buckets]) });
}

function isSnakeCase(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][a-z0-9_]*$/.test(name);
}
