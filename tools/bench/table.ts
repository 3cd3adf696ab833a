import { readFile, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import type { Measurement, Turns } from './rounds.ts';
import { median, ratios, spreadOf, textOfSpread } from './statistics.ts';

const HEADER = ['work', 'requests/s', 'ratio', 'CPU µs a request', 'ratio', 'p50 ms', 'p99 ms'];

/** A table in Markdown. */
export function table(header: readonly string[], rows: ReadonlyArray<readonly (string | number)[]>): string {
  return [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll(' --- ', '---');
}

/** Groups of what took turns: medians, and ratios to the first of the same group in the same round. Above 1 is better. */
export function comparison(groups: ReadonlyArray<readonly Turns[]>): string {
  return table(
    HEADER,
    groups.flatMap((group) => group.map((one, i) => row(one, i === 0 ? undefined : group[0]))),
  );
}

function row({ name, turns }: Turns, against: Turns | undefined): string[] {
  const all = (key: keyof Measurement, of = turns) => of.map((turn) => turn[key]);
  const typical = (key: keyof Measurement) => median(all(key)).toFixed(0);
  const other = (key: keyof Measurement) => all(key, against?.turns);
  const text = (values: readonly number[]) => (against === undefined ? '' : textOfSpread(spreadOf(values)));
  const speed = text(ratios(all('perSecond'), other('perSecond')));
  const cpu = text(ratios(other('cpu'), all('cpu')));
  return [name, typical('perSecond'), speed, typical('cpu'), cpu, typical('p50'), typical('p99')];
}

/** What was measured where, when and how often. */
export function circumstances({ rounds, requests }: { readonly rounds: number; readonly requests: number }): string {
  const model = cpus()[0]?.model ?? 'a processor without a name';
  const memory = Math.round(totalmem() / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  return `${model}, ${cpus().length} cores, ${memory} GiB, Node ${process.version}, ${day}; ${rounds} rounds of ${requests} requests.`;
}

/** A page with another text between the two markers of a name. @throws Error when it has no such markers. */
export function withMarked(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- bench: ${name} -->`, `<!-- /bench: ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} with ${end} behind it`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}

/** Writes texts between the markers of a page. */
export async function writeMarked(file: string, texts: Readonly<Record<string, string>>): Promise<void> {
  let page = await readFile(file, 'utf8');
  for (const [name, text] of Object.entries(texts)) page = withMarked(page, name, text);
  await writeFile(file, page);
}
