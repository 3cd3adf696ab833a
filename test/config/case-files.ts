/**
 * What is said of a config. In a file of `cases/`, the first document is a config; each further one changes it, as a path and its
 * new value. `# expect:` lines are its errors; without them it loads, and `# warn:` lines, where there are any, are its warnings.
 * A line `# plugins:` names the operator's plugins.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { ConfigErrors } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';
import { type Given, linesOf, load, warningsOf } from './support.ts';

type Block = Readonly<Record<string, unknown>>;

/**
 * `given` goes to the loader, `text` is the whole file instead of a change, and a path after `each` has several values in turn.
 * With `hurried`, half a minute is over in half a second.
 */
interface Case extends Block {
  readonly given?: Given;
  readonly text?: string;
  readonly hurried?: boolean;
}

/** What a case may give. A name that the loader does not know would change nothing. */
const GIVEN = ['files', 'env', 'allowUnset'];

const HALF_A_MINUTE_MS = 30_000;

/** A comment that was to say what is expected, but would be read as a title. */
const MISSPELT = /^ *# *(?!(?<=^# )(?:expect|warn|plugins): |warns of )(?:expect|warn|plugin).*$/m;

/** @param path such as `apis[0].url`. */
function change(config: Block, path: string, value: unknown): void {
  const keys = path.match(/[^.[\]]+/g) ?? [];
  const last = keys.pop() ?? '';
  const parent = keys.reduce<object>((at, key) => {
    if (Reflect.get(at, key) === undefined) Reflect.set(at, key, {});
    return Reflect.get(at, key);
  }, config);
  Reflect.set(parent, last, value);
}

/** The configs of a case: one, or one for each of several values. */
function configsOf(base: Block, { given: _, text, hurried: __, ...changes }: Case): readonly unknown[] {
  if (text !== undefined) return [text];
  const each = Object.keys(changes).find((path) => path.startsWith('each ')) ?? '';
  const values = Object.values(changes[each] ?? [undefined]);
  assert.ok(values.length > 0, `${each}: no values`);
  return values.map((value) => {
    const config = structuredClone(base);
    for (const [path, to] of Object.entries(changes))
      change(config, path.replace('each ', ''), path === each ? value : to);
    return config;
  });
}

function hurry(t: TestContext): void {
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    setTimeout(run, ms < HALF_A_MINUTE_MS ? ms : ms / 60, ...args),
  );
}

async function said(t: TestContext, content: unknown, given: Given) {
  try {
    const loaded = await load(t, content, given);
    const names = loaded.plugins.filter(({ operator }) => operator).map(({ definition }) => definition.name);
    return { expect: [], warn: warningsOf(loaded), plugins: [names.join(', ')] };
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    return { expect: linesOf(error), warn: [], plugins: [] };
  }
}

/** Runs a case, a document of a corpus. @param base the first document. */
async function check(t: TestContext, base: Block, document: string, given: Given): Promise<void> {
  assert.doesNotMatch(document, MISSPELT);
  const listed = (word: string) => Array.from(document.matchAll(RegExp(`^# ${word}: (.*)$`, 'gm')), ([, line]) => line);
  const [warn, plugins] = [listed('warn'), listed('plugins')];
  const one: Case = parse(document) ?? {};
  assert.deepEqual(
    Object.keys(one.given ?? {}).filter((name) => !GIVEN.includes(name)),
    [],
    'only what can be given',
  );
  if (one.hurried) hurry(t);
  for (const content of configsOf(base, one)) {
    const { expect, warn: warned, plugins: names } = await said(t, content, { ...given, ...one.given });
    assert.deepEqual(expect, listed('expect'), JSON.stringify(content));
    if (plugins.length > 0) assert.deepEqual(names, plugins, JSON.stringify(content));
    if (warn.length > 0) assert.deepEqual(warned, warn[0] === 'none' ? [] : warn, JSON.stringify(content));
  }
}

/** Runs the cases of a folder of `cases/`, with these plugins beside those of operators: by default the built-in ones. */
export function casesOf(folder: string, plugins: NonNullable<Given['builtins']> = definitions()): void {
  const at = new URL(`cases/${folder}/`, import.meta.url);
  for (const name of readdirSync(at).filter((file) => file.endsWith('.yaml'))) {
    describe(`${folder}/${name}`, () => {
      const [first = '', ...documents] = readFileSync(new URL(name, at), 'utf8').split(/^---\n/m);
      const base: Block = parse(first);
      let title = name;
      for (const document of documents) {
        title = /^# (?!expect: |warn: |plugins: )(.*)$/m.exec(document)?.[1] ?? title;
        it(title, (t) => check(t, base, document, { builtins: plugins }));
      }
    });
  }
}
