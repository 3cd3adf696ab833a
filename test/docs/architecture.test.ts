/** ARCHITECTURE.md names what there is, and leaves nothing out. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PUBLISHED } from '../../tools/scripts/packages.ts';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { blockNamed, missingPaths, pathsOf, readPage } from '../support/docs.ts';
import { importsOf, sources } from '../support/imports.ts';

const PAGE = 'ARCHITECTURE.md';
const page = await readPage(PAGE);
const read = (file: string) => readFileSync(join(PACKAGE_ROOT, file), 'utf8');

/** The words in backticks of a cell. */
const quoted = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

/** The rows of the tables under a heading, as cells. */
function tablesOf(text: string, heading: string): string[][][] {
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return own.split('\n\n').flatMap((part) => {
    const lines = part.split('\n').filter((line) => line.startsWith('| '));
    return lines.length === 0 ? [] : [lines.slice(1).map((line) => line.slice(2, -2).split(' | '))];
  });
}

/** The folders of this repository that the sources in one folder import. */
function imported(folder: string): string[] {
  const files = sources(folder).filter((file) => !file.startsWith('cli/plugin/template/'));
  const others = files.flatMap(importsOf).map((target) => `${target.split('/')[0]}/`);
  return [...new Set(others)].filter((other) => other !== folder && existsSync(join(PACKAGE_ROOT, other))).toSorted();
}

describe(PAGE, () => {
  it('fits on a page', () => assert.ok(page.split('\n').length < 125));

  it('names only files and folders that there are', () => assert.deepEqual(missingPaths(pathsOf(page)), []));

  it('draws the way of a request through files that there are', () => {
    const picture = blockNamed(page, 'request');
    const paths = picture.match(/[\w-]+\/[\w-]*(?:\.ts)?/g) ?? [];
    assert.ok(paths.length > 8);
    assert.deepEqual(missingPaths(paths), []);
  });

  it('draws it through functions that these files declare', () => {
    const steps = [...blockNamed(page, 'request').matchAll(/^(\S+\.ts) +([#\w.]+(?:, [#\w.]+)*)/gm)];
    const declared = steps.flatMap(([, file = '', names = '']) =>
      names.split(', ').map((name) => ({ file, name: name.split('.').at(-1) ?? '' })),
    );
    assert.ok(declared.length > 12);
    const wrong = declared.filter(
      ({ file, name }) =>
        !new RegExp(`^(?:export (?:class|const|function)|  (?:async |readonly )?|)\\s*${name}\\b`, 'm').test(
          read(file),
        ),
    );
    assert.deepEqual(wrong, []);
  });

  const [rows = [], rooms = [], libraries = []] = tablesOf(page, 'Who imports whom');
  for (const [name, , allowed] of rows) {
    const [folder = ''] = quoted(name);
    it(`${folder} imports what the table says`, () => assert.deepEqual(imported(folder), quoted(allowed).toSorted()));
  }

  it('the table has every folder that the program consists of', () => {
    const folders = rows.flatMap(([name]) => quoted(name));
    assert.deepEqual(folders.toSorted(), PUBLISHED.map((folder) => `${folder}/`).toSorted());
  });

  it('has every room of the SDK', () => {
    const folders = readdirSync(join(PACKAGE_ROOT, 'plugins-sdk'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `plugins-sdk/${name}/`);
    const listed = rooms.flatMap(([name]) => quoted(name)).filter((room) => room.startsWith('plugins-sdk/'));
    assert.deepEqual(listed.toSorted(), folders.toSorted());
  });

  for (const [name, use] of libraries) {
    it(`${name} is used where the table says`, () => {
      const place = quoted(use).at(-1) ?? '';
      const files = place.endsWith('/')
        ? readdirSync(join(PACKAGE_ROOT, place)).map((file) => join(place, file))
        : [place];
      assert.match(files.map(read).join(''), new RegExp(`['"]${name}['"/]`));
    });
  }
});

describe('the glossary', () => {
  it('explains terms that the code has, each where it says', () => {
    const [glossary = []] = tablesOf(page, 'Glossary');
    assert.ok(glossary.length > 10);
    const wrong = glossary.filter(([, place]) => {
      const [name = '', file = ''] = quoted(place);
      return !new RegExp(`^export (?:class|function|interface|type) ${name}\\b`, 'm').test(read(file));
    });
    assert.deepEqual(wrong, []);
  });

  it('explains the terms of the field that the project has chosen', () => {
    const [glossary = []] = tablesOf(page, 'Glossary');
    const terms = glossary.map(([term]) => term);
    const chosen =
      'budget,plugin set,wait group,abort signal,context key,response,single flight,worker,receipt,signer,approval'.split(
        ',',
      );
    assert.deepEqual(
      chosen.filter((term) => !terms.includes(term)),
      [],
    );
  });
});
