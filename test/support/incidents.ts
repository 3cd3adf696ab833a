import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readPage } from './docs.ts';

const run = promisify(execFile);

/** The cells of the table of symptoms of docs/troubleshooting.md. */
async function rows(): Promise<string[][]> {
  const [page = ''] = (await readPage('docs/troubleshooting.md')).split('## Alerts');
  const [, ...lines] = page.split('\n').filter((line) => line.startsWith('| '));
  return lines.map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|').trim()));
}

export async function symptomsOf(): Promise<string[]> {
  return (await rows()).map(([, symptom = '']) => symptom);
}

/** The query of a row of docs/troubleshooting.md. */
export async function queryOf(symptom: string): Promise<string> {
  const [, , query = ''] =
    (await rows()).find(([, name]) => name === symptom) ?? assert.fail(`no row for "${symptom}"`);
  return /^`(.+)`$/.exec(query)?.[1] ?? assert.fail(`the query of "${symptom}" is not all code: ${query}`);
}

/**
 * What the row's query finds in a JSON log, by the command that the page shows.
 * @param given what whoever asks puts in place of the words in capitals.
 */
export async function foundInLog(
  symptom: string,
  log: string,
  given: Readonly<Record<string, string>> = {},
): Promise<unknown[]> {
  const query = Object.entries(given).reduce(
    (text, [word, value]) => text.replaceAll(word, value),
    await queryOf(symptom),
  );
  const child = run('jq', ['-cR', `fromjson? | ${query}`], { maxBuffer: 1 << 28 });
  child.child.stdin?.end(log);
  const { stdout } = await child;
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
}
