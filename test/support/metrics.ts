import assert from 'node:assert/strict';
import type { RunningService } from './service.ts';
import { eventually } from './wait.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

/** What a service exports, read by the rules of Prometheus's text format. */
export class Scrape {
  readonly text: string;
  /** Kinds by name. */
  readonly types = new Map<string, string>();
  readonly helps = new Map<string, string>();
  readonly samples: Sample[] = [];

  constructor(text: string) {
    this.text = text;
    for (const line of text.split('\n')) {
      const [, help, about = ''] = /^# HELP (\S+) (.+)$/.exec(line) ?? [];
      const [, type, kind = ''] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
      if (help !== undefined) this.helps.set(help, about);
      else if (type !== undefined) this.types.set(type, kind);
      else if (line !== '') this.samples.push(sampleOf(line));
    }
  }

  /** The value of one series; `undefined` when there is none. Without the service's prefix the name gets it. */
  value(name: string, labels: Labels = {}): number | undefined {
    const wanted = key(labels);
    return this.#named(name).find((sample) => key(sample.labels) === wanted)?.value;
  }

  /** All series of a name: the values by those of the labels, in the order of the metric. */
  table(name: string): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#named(name).map(({ labels, value }) => [Object.values(labels).join(' '), value]));
  }

  /** Those of them that are not 0: what has happened. */
  happened(name: string): Readonly<Record<string, number>> {
    return Object.fromEntries(Object.entries(this.table(name)).filter(([, value]) => value !== 0));
  }

  /** The metric that a sample belongs to. */
  metricOf({ name }: Sample): string {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    return this.types.get(base) === 'histogram' ? base : name;
  }

  #named(name: string): Sample[] {
    const whole = `signed_data_proxy_${name}`;
    return this.samples.filter((sample) => sample.name === name || sample.name === whole);
  }
}

function key(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function sampleOf(line: string): Sample {
  const [, name = '', inner = '', value = ''] = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
  assert.notEqual(name, '', `a line of Prometheus's text format: ${line}`);
  const labels = [...inner.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', text = '']) => [
    label,
    text,
  ]);
  return { name, labels: Object.fromEntries(labels), value: Number(value) };
}

/** Where the service says that its metrics are; the last place, if there were several. */
export function metricsUrl({ logs }: Pick<RunningService, 'logs'>): string {
  const urls = logs.flatMap(({ message }) => /^metrics on (\S+)$/.exec(message)?.[1] ?? []);
  return urls.at(-1) ?? assert.fail('the service named the address of its metrics');
}

/** Asks the service for its metrics. */
export async function scrape(service: Pick<RunningService, 'logs'>): Promise<Scrape> {
  // A connection that stays may end while promtool holds the process up.
  const response = await fetch(metricsUrl(service), { headers: { connection: 'close' } });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  return new Scrape(text);
}

/** Asks until as many requests are counted: a response is counted once it is out, a moment after the client has it. */
export async function scrapeAfter(service: Pick<RunningService, 'logs'>, requests: number): Promise<Scrape> {
  let counted = 0;
  const holds = (found: Scrape) => {
    counted = Object.values(found.table('requests_total')).reduce((sum, value) => sum + value, 0);
    assert.ok(counted <= requests, `${counted} instead of ${requests} requests are counted`);
    return counted === requests;
  };
  return scrapeUntil(service, holds, () => `${requests} requests to be counted, not ${counted}`);
}

/** Asks until the metrics are so. */
export function scrapeUntil(
  service: Pick<RunningService, 'logs'>,
  holds: (found: Scrape) => boolean,
  what: string | (() => string) = String(holds),
): Promise<Scrape> {
  const look = async () => {
    const found = await scrape(service);
    return holds(found) && found;
  };
  return eventually(look, what);
}

/** A metric in a PromQL expression, and the labels that the expression wants of it. */
export interface Selected {
  readonly name: string;
  readonly labels: readonly string[];
}

const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'unless', 'by', 'on', 'bool', 'offset']);

/** The metrics that a PromQL expression selects, as far as the expressions of this project go. */
export function selectedBy(expression: string): Selected[] {
  const bare = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\[[^\]]*\]/g, '');
  const grouped = [...bare.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/, */));
  const rest = bare.replace(/\b(?:by|on) \([^)]*\)/g, '');
  const names = [...rest.matchAll(/(?<![\w$])([a-z_]\w*)\b(?! *\()(?:\{([^}]*)\})?/g)].filter(
    ({ 1: name = '', index }) => !WORDS.has(name) && !insideBraces(rest, index),
  );
  return names.map(([, name = '', matchers = '']) => {
    const matched = [...matchers.matchAll(/(\w+) *(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
    return { name, labels: [...new Set([...matched, ...grouped])] };
  });
}

function insideBraces(text: string, index: number): boolean {
  return text.lastIndexOf('{', index) > text.lastIndexOf('}', index);
}

/** What Prometheus adds to every series, and the metrics of its own. */
const ADDED = ['instance', 'job'];
const OWN = ['up'];

/** What an expression asks for that no series of the scrape has: a metric, or a label of one. */
export function missingFrom(scrape: Scrape, expression: string): string[] {
  const selected = selectedBy(expression).filter(({ name }) => !OWN.includes(name));
  if (selected.length === 0 && !OWN.some((name) => expression.includes(name))) return [`no metric in ${expression}`];
  return selected.flatMap(({ name, labels }) => {
    const samples = scrape.samples.filter((sample) => sample.name === name);
    if (samples.length === 0) return [name];
    const known = new Set([...ADDED, ...samples.flatMap((sample) => Object.keys(sample.labels))]);
    return labels.filter((label) => !known.has(label)).map((label) => `${name}{${label}}`);
  });
}
