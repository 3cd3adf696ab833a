import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block of a page (CommonMark, section 4.5), such as ` ```sh background `. */
export interface Block {
  /** The first word behind the fence; empty where there is none. */
  readonly language: string;
  /** The words after it, `name=value` or just `name`; pages show none of them. */
  readonly notes: ReadonlyMap<string, string>;
  readonly text: string;
  /** Of the fence, counted from 1. */
  readonly line: number;
}

const FENCED = /^( *)```(\w*)(?: ([^\n]*))?\n(.*?)^\1```$/gms;

/** A comment, a redirection, a separator, or (captured) a word. */
const TOKEN = /(?<=^|\s)#[^\n]*|[<>]+ *[^\s;|&]+|&&|\|\||[;|\n]|((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&'"\\])+)/g;
const SEPARATOR = /^(?:&&|\|\||[;|\n])$/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/** The text of a page by its path in the repository. */
export function readPage(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8');
}

/** The fenced blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(FENCED)].map(({ 1: indent = '', 2: language = '', 3: notes = '', 4: text = '', index }) => ({
    language,
    notes: new Map(notes.split(' ').map((note): [string, string] => split(note, '='))),
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: page.slice(0, index).split('\n').length,
  }));
}

/** The texts of the blocks of one language. */
export function textsOf(page: string, language: string): string[] {
  return blocksOf(page).flatMap((block) => (block.language === language ? [block.text] : []));
}

/** The blocks that are whole files, by the name in their note `file=`. */
export function filesOf(page: string): Map<string, string> {
  return new Map(
    blocksOf(page).flatMap(({ notes, text }): [string, string][] => {
      const name = notes.get('file');
      return name === undefined ? [] : [[name, text]];
    }),
  );
}

/** A YAML block that shows a part of a config file, with the rest that a file must have. */
export function wholeConfig(block: string): string {
  const version = /^version:/m.test(block) ? '' : "version: '1.0'\n";
  const apis =
    'apis: [{ name: a, url: https://a.example, auth: { type: free }, endpoints: [{ name: e, path: /e }] }]\n';
  return `${block}${version}${/^apis:/m.test(block) ? '' : apis}`;
}

/** The text of the page's block of that name. */
export function blockNamed(page: string, name: string): string {
  const block = blocksOf(page).find(({ notes }) => notes.get('named') === name);
  return block?.text ?? assert.fail(`no block ${name}`);
}

/**
 * The simple commands in the text of a `sh` block, as words without their quotes. `&&`, `||`, `;`, `|` and line feeds
 * separate commands; comments, redirections and assignments in front are left out.
 */
export function commandsOf(shell: string): string[][] {
  const commands: string[][] = [[]];
  for (const [token, word] of shell.replace(/\\\n/g, ' ').matchAll(TOKEN)) {
    if (word !== undefined) commands.at(-1)?.push(unquoted(word));
    else if (SEPARATOR.test(token)) commands.push([]);
  }
  return commands
    .map((words) => {
      const program = words.findIndex((word) => !ASSIGNMENT.test(word));
      return program === -1 ? [] : words.slice(program);
    })
    .filter((words) => words.length > 0);
}

function unquoted(word: string): string {
  return word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, single, double) => single ?? double);
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** The names by which a page's headings are linked to, as GitHub makes them, and those that it gives itself (`<a id>`). */
export function anchorsOf(page: string): Set<string> {
  const prose = page.replace(FENCED, '');
  const seen = new Map<string, number>();
  const anchors = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/ /g, '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
  return new Set([...anchors, ...[...prose.matchAll(/<a id="([\w-]+)">/g)].map(([, id = '']) => id)]);
}

/** The targets of a page's links and images that are not of another site. */
export function linksOf(page: string): string[] {
  const prose = page.replace(FENCED, '').replace(/`[^`\n]*`/g, '``');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) =>
    /^[a-z]+:/i.test(target) ? [] : [target],
  );
}

/**
 * The paths of files and folders that a page names in backticks, outside its blocks. Names in the package are none, nor is
 * what a command makes below `.cache`: a fresh clone has no such folder.
 */
export function pathsOf(page: string): string[] {
  const named = [...page.replace(FENCED, '').matchAll(/`([\w.-]+(?:\/[\w.-]*)+|[A-Z]+\.md)`/g)];
  return named.map(([, path = '']) => path).filter((path) => !/^(?:signed-data-proxy|\.cache)\//.test(path));
}

/** Those of the paths at which this repository has nothing. */
export function missingPaths(paths: readonly string[]): string[] {
  return paths.filter((path) => !existsSync(join(ROOT, path)));
}

/** A text with the hunks of a diff applied, each where its old lines stand. @throws unless they stand there once. */
export function patched(text: string, diff: string): string {
  return diff.split(/^@@\n/m).reduce((before, hunk) => {
    const linesBut = (sign: string) =>
      hunk
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith(sign))
        .map((line) => `${line.slice(1)}\n`)
        .join('');
    const [old, renewed] = [linesBut('+'), linesBut('-')];
    assert.equal(before.split(old).length, 2, `these lines stand once in the file:\n${old}`);
    return before.replace(old, () => renewed);
  }, text);
}
