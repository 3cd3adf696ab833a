import assert from 'node:assert/strict';
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type LoadedConfig, loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { folderWith, launch, PACKAGE_ROOT, PROGRAM, type Running } from '../cli/run.ts';
import { anvil } from '../support/chain.ts';
import { type Block, blocksOf, commandsOf, readPage, wholeConfig } from '../support/docs.ts';

export interface WalkOptions {
  /** Variables of the reader's shell. */
  readonly env?: Readonly<Record<string, string>>;
  /** Texts of the page by what stands in their place here, such as URLs of loopback servers. */
  readonly instead?: Readonly<Record<string, string>>;
  /** Headings of the second level between which the reader walks; the whole page without them. */
  readonly from?: string;
  readonly until?: string;
  /** Blocks that are not run, by the beginning of their text, with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
}

const PORT = 3000;
/** Milliseconds in which a program must print what the page shows; when it is killed, the error shows what it printed. */
const OUTPUT_TIMEOUT_MS = 20_000;
/** How often a block with the note `repeat` is run until it prints what the page shows, and the milliseconds between. */
const TRIES = 50;
const PAUSE = 50;

/**
 * Does what a reader of a page does: saves the files, runs the commands from top to bottom, and finds what the page
 * shows. Every block is run, shown to be right, or skipped for a reason.
 *
 * - `sh` runs in bash; `npm` is the command line of this source tree. Notes: `background` (stays running; the block that
 *   follows is what it prints first), `repeat` (until it prints what follows), `exit=1`.
 * - A block with `file=` is saved. `yaml` without is a part of a config that is valid.
 * - `json`, `text` and `http` behind a command are its output, unless a note `named=` leaves them to a test of the page. `…` stands for any text; times, durations and, where they
 *   follow from a URL that is another here, endpoint IDs may differ. Of headers only those that are shown are compared.
 *
 * A `text` with the note `log` is printed by the program in the background, sooner or later.
 *
 * `<name>` in a command is the member of that name in the last JSON output; `<pid>` is the process started last.
 */
export async function walk(t: TestContext, path: string, options: WalkOptions = {}): Promise<void> {
  const reader = await Reader.arrive(t, options);
  const skipped = new Set<string>();
  for (const block of blocksOf(between(await readPage(path), options))) {
    const reason = Object.keys(options.skip ?? {}).find((beginning) => block.text.startsWith(beginning));
    if (reason !== undefined) skipped.add(reason);
    else await t.test(`line ${block.line}: ${block.text.split('\n', 1)}`, () => reader.read(block));
  }
  assert.deepEqual([...skipped], Object.keys(options.skip ?? {}), 'what is not run is on the page');
  assert.deepEqual(reader.unused(), [], 'programs of the page are run by it');
}

function between(page: string, { from, until }: WalkOptions): string {
  const place = (heading: string) => {
    const index = page.indexOf(`\n## ${heading}\n`);
    return index < 0 ? assert.fail(`no heading ${heading}`) : index;
  };
  return page.slice(from === undefined ? 0 : place(from), until === undefined ? undefined : place(until));
}

class Reader {
  readonly #t: TestContext;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;
  /** What stands on the page, and what is true here. */
  readonly #translation: Map<string, string>;
  readonly #programs = new Set<string>();
  #ran: (() => Promise<string>) | undefined;
  #output = '';
  #running: Running | undefined;
  #repeats = false;

  constructor(t: TestContext, folder: string, { env = {}, instead = {} }: WalkOptions) {
    this.#t = t;
    this.#folder = folder;
    this.#env = { ...env, PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}` };
    // A port that is free, whatever is running on this machine.
    const ports = { [`port: ${PORT}`]: 'port: 0', 'listen(4000': 'listen(0' };
    this.#translation = new Map(Object.entries({ ...ports, ...instead }));
  }

  /** In a folder that looks like the clone to whoever asks npm or imports a package. */
  static async arrive(t: TestContext, options: WalkOptions): Promise<Reader> {
    const folder = await folderWith(t);
    await mkdir(join(folder, 'node_modules'));
    await symlink(PACKAGE_ROOT, join(folder, 'node_modules/signed-data-proxy'));
    for (const name of ['ethers', 'solc', 'tsx'])
      await symlink(join(PACKAGE_ROOT, 'node_modules', name), join(folder, 'node_modules', name));
    await cp(join(PACKAGE_ROOT, 'examples/pay'), join(folder, 'examples/pay'), { recursive: true });
    await mkdir(join(folder, 'bin'));
    await writeFile(join(folder, 'bin/npm'), npm);
    await chmod(join(folder, 'bin/npm'), 0o755);
    await writeFile(join(folder, 'bin/anvil'), `#!/bin/sh\nexec ${JSON.stringify(anvil())} "$@"\n`, { mode: 0o755 });
    return new Reader(t, folder, options);
  }

  /** Programs that were saved and never run. */
  unused(): string[] {
    return [...this.#programs];
  }

  async read(block: Block): Promise<void> {
    const { language, notes, text } = block;
    const file = notes.get('file');
    if (file !== undefined) await this.#save(file, language, text);
    else if (language === 'sh') await this.#run(block);
    else if (language === 'yaml') await loadText(wholeConfig(text));
    else if (notes.has('named')) return;
    else await this.#compare(block);
  }

  async #save(file: string, language: string, text: string): Promise<void> {
    if (language === 'js') this.#programs.add(file);
    await writeFile(join(this.#folder, file), this.#translated(text));
    if (language !== 'yaml') return;
    const shown = await idsOf(text);
    const here = await idsOf(this.#translated(text));
    for (const [name, id] of shown) this.#translation.set(id, here.get(name) ?? assert.fail(name));
  }

  async #run({ text, notes }: Block): Promise<void> {
    for (const word of commandsOf(text).flat()) this.#programs.delete(word);
    const script = this.#translated(text).replace(/<(\w+)>/g, (_, name) => this.#known(name));
    const start = (text: string) => launch(this.#t, 'bash', ['-eu', '-c', text], { cwd: this.#folder, env: this.#env });
    if (notes.has('background')) {
      // Signals are for the program, not for the shell that started it.
      this.#running = start(`exec env ${script}`);
      this.#ran = undefined;
      return;
    }
    this.#repeats = notes.has('repeat');
    this.#ran = async () => {
      const { code, stdout, stderr } = await start(script).ended;
      assert.equal(code, Number(notes.get('exit') ?? 0), stdout + stderr);
      return stdout + stderr;
    };
    this.#output = await this.#ran();
  }

  #known(name: string): string {
    if (name === 'pid') return String(this.#running?.child.pid);
    const output: unknown = JSON.parse(this.#output);
    const value: unknown = Reflect.get(Object(output), name);
    assert.ok(typeof value === 'string', `the last output has ${name}`);
    return value;
  }

  async #compare(block: Block): Promise<void> {
    if (this.#ran === undefined || block.notes.has('log')) return this.#await(block);
    for (let tries = 1; ; tries++) {
      try {
        return compare(block.language, this.#translated(block.text), this.#output);
      } catch (error) {
        if (!this.#repeats || tries === TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        this.#output = await this.#ran();
      }
    }
  }

  /** What a program in the background prints, and on which ports it listens. */
  async #await({ language, text }: Block): Promise<void> {
    assert.equal(language, 'text');
    const hosts = [...text.matchAll(/127\.0\.0\.1:\d+/g)].map(([host]) => host).filter((host) => !this.#isKnown(host));
    const pattern = patternOf(this.#translated(text).trimEnd());
    const source = hosts.reduce((all, host) => all.replace(escaped(host), '(127\\.0\\.0\\.1:\\d+)'), pattern);
    const [, ...found] = await this.#printed(new RegExp(`^${source}$`, 'm'));
    for (const [i, host] of hosts.entries()) this.#translation.set(host, found[i] ?? host);
  }

  async #printed(pattern: RegExp): Promise<RegExpExecArray> {
    const running = this.#running ?? assert.fail('nothing runs in the background');
    const late = setTimeout(() => running.child.kill('SIGKILL'), OUTPUT_TIMEOUT_MS);
    try {
      const found = await running.output(pattern);
      // Blocks have whole seconds: a payment of this one may be older than the record of payments, as no reader's is.
      await new Promise((resolve) => setTimeout(resolve, 1000 - (Date.now() % 1000)));
      return found;
    } finally {
      clearTimeout(late);
    }
  }

  #isKnown(text: string): boolean {
    return this.#translated(text) !== text;
  }

  #translated(text: string): string {
    return [...this.#translation].reduce((all, [from, to]) => all.replaceAll(from, to), text);
  }
}

/** What the CLI needs of npm, without the time that npm takes. */
const npm = `#!/bin/sh
command=
while [ "$1" != -- ]; do
  if [ "$1" = start ]; then command=start; fi
  shift
done
shift
exec node ${JSON.stringify(PROGRAM)} $command "$@"
`;

/** Endpoint IDs by name. @throws ConfigErrors */
async function idsOf(text: string): Promise<Map<string, string>> {
  const { endpoints } = await loadText(text);
  return new Map(endpoints.map(({ api, name, id }) => [`${api}/${name}`, id]));
}

/** Loads the text of a config file, whose variables need not be set. @throws ConfigErrors */
export async function loadText(text: string): Promise<LoadedConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'sdp-docs-'));
  try {
    const file = join(folder, 'config.yaml');
    await writeFile(file, text);
    return await loadConfig({ file, env: {}, builtins: definitions(), allowUnset: true });
  } finally {
    await rm(folder, { recursive: true });
  }
}

function compare(language: string, shown: string, output: string): void {
  if (language === 'json') alike(JSON.parse(shown), JSON.parse(output));
  else if (language === 'http') compareResponse(shown, output);
  else if (language === 'text') assert.match(output.trimEnd(), new RegExp(`^${patternOf(shown.trimEnd())}$`));
  else assert.fail(`a block of ${language || 'nothing'} that is neither run nor saved nor skipped`);
}

/** Status and body, and the headers that are shown. */
function compareResponse(shown: string, output: string): void {
  const [head = '', body = ''] = shown.trimEnd().split('\n\n');
  const [sentHead = '', sentBody = ''] = output.replaceAll('\r\n', '\n').trimEnd().split('\n\n');
  for (const line of head.split('\n')) assert.match(sentHead, new RegExp(`^${patternOf(line)}$`, 'm'));
  assert.match(sentBody, new RegExp(`^${patternOf(body)}$`));
}

/** Compares JSON values: keys in their order, texts and numbers as {@link patternOf} has them. */
function alike(shown: unknown, actual: unknown): void {
  if (typeof shown !== 'object' || shown === null) {
    assert.equal(typeof actual, typeof shown);
    assert.match(String(actual), new RegExp(`^${patternOf(String(shown))}$`));
    return;
  }
  assert.deepEqual(Object.keys(Object(actual)), Object.keys(shown));
  assert.equal(Array.isArray(actual), Array.isArray(shown));
  for (const [key, value] of Object.entries(shown)) alike(value, Reflect.get(Object(actual), key));
}

/** Texts that may differ from run to run: what is left out, ISO times, Unix times of this decade, durations. */
const VARIES = /…|\d{4}-\d\d-\d\dT[\d:.]+Z|\b1[789]\d{8}\b|\b\d+(?:\.\d+)? ?ms\b/g;

function patternOf(shown: string): string {
  const parts = shown.split(VARIES).map(escaped);
  const kinds = [...shown.matchAll(VARIES)].map(([text]) => {
    if (text === '…') return '[^\\n]*';
    if (text.endsWith('ms')) return '\\d+(?:\\.\\d+)? ?ms';
    return text.endsWith('Z') ? '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z' : '1\\d{9}';
  });
  return parts.map((part, i) => part + (kinds[i] ?? '')).join('');
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
