/** A built-in is an operator's plugin: copied out of the repository, it needs other import lines and nothing else. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';

const COPIED = { health: 'health', 'rate-limit': 'rateLimit' };

const folderOf = (name: string) => new URL(`../../builtins/${name}/`, import.meta.url);
const read = (name: string, file: string) => readFileSync(new URL(file, folderOf(name)), 'utf8');

/** The file with the package's name in place of paths that lead out of the folder; built-ins import nothing else of their repository. */
function copyOf(name: string, file: string): string {
  return read(name, file).replaceAll(/ from '(\.\.\/[^']+)\.ts';$/gm, (_, path: string) => {
    const inPackage = new URL(path, `file:///builtins/${name}/`).pathname.replace(/^\/(plugins-sdk)\/index$/, '/$1');
    return ` from 'signed-data-proxy${inPackage}';`;
  });
}

/** What an operator gets who copies the folder. */
const copies = Object.fromEntries(
  Object.keys(COPIED).flatMap((name) =>
    readdirSync(folderOf(name)).map((file) => [`copied-${name}/${file}`, copyOf(name, file)]),
  ),
);

describe('built-ins that an operator has copied, with other import lines alone', async () => {
  const shown = ([name, exported]: string[]) => `export { ${exported} as default } from './copied-${name}/index.ts';`;
  const files = Object.fromEntries(Object.entries(COPIED).map((entry) => [`${entry[0]}.ts`, shown(entry)]));
  const plugins = Object.keys(COPIED).flatMap((name) => [
    { source: `builtin:${name}`, enabled: false },
    { source: `./${name}.ts` },
  ]);
  const more = { server: { rateLimit: { max: 3, window: 3_600_000 } }, settings: { openapi: true, plugins } };
  const config = oneApi('http://127.0.0.1:9', { e: {} }, more);
  const service = await serviceFor(suite, config, { files: { ...copies, ...files } });

  it('are changed as docs/plugins.md shows it of health', () => {
    const page = readFileSync(new URL('../../docs/plugins.md', import.meta.url), 'utf8');
    const shown = /```diff\n(.*?)```/s.exec(page)?.[1] ?? '';
    const changed = (text: string, mark: string) =>
      text.split('\n').flatMap((line) => (/^import .* from '(?!\.\/)/.test(line) ? [mark + line] : []));
    const lines = ['index.ts', 'openapi.ts'].flatMap((file) => [
      `--- ${file}`,
      ...changed(read('health', file), '-'),
      ...changed(copyOf('health', file), '+'),
    ]);
    assert.deepEqual(shown.trimEnd().split('\n'), lines);
  });

  it('import nothing by a relative path but files of their folder', () => {
    for (const text of Object.values(copies)) assert.doesNotMatch(text, /from '\.(?!\/\w+\.ts')/);
    for (const name of Object.keys(COPIED)) {
      const text = copyOf(name, 'index.ts');
      assert.match(text, /from 'signed-data-proxy\/plugins-sdk'/);
      assert.match(text, /from 'signed-data-proxy\/builtins\/shared\//);
    }
  });

  it('serve routes', async () => {
    const response = await fetch(`${service.url}/health`);
    assert.deepEqual([response.status, await response.json()], [200, { status: 'ok', node: TEST_ADDRESS }]);
  });

  it('describe themselves', async () => {
    const document = await (await fetch(`${service.url}/openapi.json`)).text();
    assert.equal(JSON.parse(document).paths['/health'].get.operationId, 'health');
  });

  it('own keys of the config, and refuse clients by them', async () => {
    const ask = async () => (await service.post('api/e')).status;
    // The document was the first of three requests.
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 502, 429]);
  });
});
