/**
 * Commands, and to the letter what they print. In a file of `transcripts/`, `=== title` begins a test, and `$ words` runs a command.
 * Below it are the lines of stdout, those of stderr behind `! `, what the upstream was asked behind `> `, and an exit code that is
 * not 0, such as `[1]`. `$ edit file from to` changes a file, `$ cat file` prints it, and `$ ls` names all. `-- name --` begins a file of the folder,
 * and `-- <upstream>/path 200 --` an answer of the upstream; in front of the first test, they are of each one. A section may end
 * with one blank line.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { packageVersion } from '../../service/surroundings.ts';
import { faults, type Handler, type Upstream, upstreamFor } from '../support/upstream.ts';
import { folderWith, runCli } from './run.ts';

/** The line that begins a section, and the text below it. */
type Section = readonly [head: string, text: string];

const SECTION = /^(-- .+ --|\$(?: \S.*)?)\n/m;

/** A variable in front of a command. */
const VARIABLE = /^[A-Z_]+=/;

function sectionsOf(text: string): Section[] {
  const [, ...parts] = text.split(SECTION);
  return Array.from({ length: parts.length / 2 }, (_, i) => [
    parts[2 * i] ?? '',
    (parts[2 * i + 1] ?? '').replace(/(^|\n)\n$/, '$1'),
  ]);
}

/** Words as of a shell, but double quotes hold a JSON string. */
function wordsOf(line: string): string[] {
  return Array.from(line.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"])+/g), ([word]) =>
    word.replace(/'([^']*)'|"(?:\\.|[^"\\])*"/g, (quoted, single) => single ?? JSON.parse(quoted)),
  );
}

/** What is done to files beside the commands. */
const TOOLS = new Map<string, (cwd: string, file: string, from: string, to: string) => Promise<string>>([
  ['ls', async (cwd) => (await readdir(cwd)).sort().map(lineOf).join('')],
  ['cat', (cwd, file) => readFile(join(cwd, file), 'utf8')],
  ['edit', edit],
]);

async function edit(cwd: string, file: string, from: string, to: string): Promise<string> {
  const [before = '', after, ...more] = (await readFile(join(cwd, file), 'utf8')).split(from);
  assert.ok(after !== undefined && more.length === 0, `${file} has "${from}" once`);
  await writeFile(join(cwd, file), before + to + after);
  return '';
}

async function printed(t: TestContext, upstream: Upstream, cwd: string, words: readonly string[]): Promise<string> {
  const [first = '', file = '', from = '', to = ''] = words;
  const tool = TOOLS.get(first);
  if (tool !== undefined) return tool(cwd, file, from, to);
  const env = Object.fromEntries(words.flatMap((word) => (VARIABLE.test(word) ? [word.split(/=(.*)/s)] : [])));
  const args = words.slice(Object.keys(env).length);
  const { code, stdout, stderr } = await runCli(t, args, { cwd, env });
  const asked = upstream.requests.splice(0).map(({ method, path, headers: { authorization = '' }, body }) => {
    return ['>', method, path, authorization, body].filter((part) => part !== '').join(' ');
  });
  const end = [...asked, ...(code === 0 ? [] : [`[${code}]`])];
  return [stdout, stderr.replace(/^(?=.|\n)/gm, '! '), ...end.map(lineOf)].join('');
}

function lineOf(text: string): string {
  return `${text}\n`;
}

/** A redirect leads to its text. */
function answer(text: string, status: number): Handler {
  return status >= 300 && status < 400 ? faults.redirect(text, status) : faults.text(text, { status });
}

async function check(t: TestContext, sections: readonly Section[]): Promise<void> {
  const [cwd, upstream] = [await folderWith(t), await upstreamFor(t)];
  const filled = (text: string) =>
    text
      .replaceAll('<cwd>', cwd)
      .replaceAll('<upstream>', upstream.url)
      .replaceAll('<host>', new URL(upstream.url).host)
      .replaceAll('<version>', packageVersion());
  for (const [head, text] of sections) {
    const [, path, status = '200', name = ''] = /^-- (?:<upstream>(\S+)(?: (\d+))?|(.+)) --$/.exec(head) ?? [];
    assert.ok(!name.startsWith('<upstream>'), head);
    if (head.startsWith('$'))
      assert.equal(await printed(t, upstream, cwd, wordsOf(filled(head.slice(2)))), filled(text), head);
    else if (path === undefined) await writeFile(join(cwd, name), filled(text), { mode: 0o600 });
    else upstream.on(path, answer(filled(text).trimEnd(), Number(status)));
  }
}

/** Files that are run apart, by subject: a test takes at most two seconds of a processor. */
const SUBJECTS = {
  choices: ['choices'],
  config: ['address', 'config-validate', 'identity', 'recommend-receipts', 'verify-parameters-config'],
  values: ['hex', 'json', 'numbers', 'verify', 'verify-parameters'],
};

/** Runs the transcripts that lie beside a test: those of a subject, or else of none. */
export function transcripts(test: string, subject?: keyof typeof SUBJECTS): void {
  const folder = new URL('transcripts/', test);
  const apart = Object.values(SUBJECTS).flat();
  const others = readdirSync(folder).map((file) => file.replace('.txt', ''));
  for (const name of subject === undefined ? others.filter((each) => !apart.includes(each)) : SUBJECTS[subject]) {
    const [first = '', ...tests] = readFileSync(new URL(`${name}.txt`, folder), 'utf8').split(/^=== /m);
    describe(name, () => {
      for (const text of tests) {
        const [title = ''] = text.split(SECTION, 1);
        it(title.trimEnd(), (t) => {
          assert.match(title, /^.+\n+$/, 'only a title is in front of the first section');
          assert.match(text, /^\$/m, 'a command is run');
          return check(t, [...sectionsOf(first), ...sectionsOf(text)]);
        });
      }
    });
  }
}
