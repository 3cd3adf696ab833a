/** docs/troubleshooting.md has each reason, warning and error that the log can show. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { readPage } from '../support/docs.ts';

/** A literal: what it says, with `…` for what varies. */
const LITERAL = String.raw`(?:'((?:\\.|[^'\\\n])*)'|\`((?:\\.|[^\`\\])*)\`)`;

/** Where a text that the log can show is written: behind each of these stands a literal. */
const PLACES = [
  // Lines of their own.
  String.raw`(?:log|reporter|settings\))\.(?:warn|error)\(\s*`,
  String.raw`\b(?:crash|explain|#tell)\(\s*`,
  // Reasons of refusals: given, by the functions that make a refusal of a reason, and by the errors that become one.
  String.raw`\breason: (?:\w+ \? '[^']*' : )?`,
  String.raw`\b(?:failed|busy|unavailable|tooOld|wrongSigner|mismatch|invalid|internal|#fail|fail|proxyFault|unreadable)\((?:'[a-z-]+', )?\s*`,
  String.raw`\bnew (?:ValueError|BudgetError|TimesError|JsonRpcFailure|Exhausted|StateUnavailable|ClaimError|SignerFailure)\(\s*`,
  String.raw`\bnew PlanError\(\s*'\w+',\s*`,
  String.raw`\bnew RequestFailure\('too-large',\s*`,
  String.raw`\bensure\([^;]*?, `,
].map((before) => new RegExp(before + LITERAL, 'g'));

/** The explanations of errors by their code. */
const EXPLAINED = /^ {2}\['[A-Z_]+', (?:'([^']*)'|\w+)\],$/gm;

const FOLDERS = ['kernel', 'http', 'lib', 'service', 'cli', 'config', 'builtins', 'plugins-sdk'];
/** Programs for the command line and for browsers, and tests' parts, whose texts no service logs. */
const OTHERS =
  /^(?:explorer\/|import\/|commands\/|identity\/|plugin\/|demo|testing\/|results\/|json-path\/syntax|plugins\/(?:load|check-))/;

async function textsIn(folder: string): Promise<[text: string, where: string][]> {
  const names = await readdir(join(PACKAGE_ROOT, folder), { recursive: true });
  const sources = names.filter((name) => name.endsWith('.ts') && !OTHERS.test(name));
  const found = await Promise.all(
    sources.map(async (name) => {
      const text = await readFile(join(PACKAGE_ROOT, folder, name), 'utf8');
      const literals = PLACES.flatMap((place) =>
        [...text.matchAll(place)].map(([, plain, template]) => plain ?? template ?? ''),
      );
      const explained = /[/-]faults\.ts$/.test(name)
        ? [...text.matchAll(EXPLAINED)].map(([, plain = '']) => plain)
        : [];
      return [...literals, ...explained].map((literal): [string, string] => [shown(literal), `${folder}/${name}`]);
    }),
  );
  return found.flat().filter(([text]) => /[a-z]{3} |[ …][a-z]{3}/i.test(text));
}

function shown(literal: string): string {
  return literal.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…').replace(/\\(.)/g, '$1');
}

it('docs/troubleshooting.md has each reason and each warning and error that the log can show', async () => {
  const page = await readPage('docs/troubleshooting.md');
  const spans = new Set([...page.matchAll(/(`+) ?(.+?) ?\1/g)].map(([, , text = '']) => text));
  const texts = new Map((await Promise.all(FOLDERS.map(textsIn))).flat());
  assert.ok(texts.size > 100, 'the sources were read');
  const missing = [...texts].filter(([text]) => !spans.has(text)).map(([text, where]) => `${where}: ${text}`);
  assert.equal(missing.join('\n'), '');
});
