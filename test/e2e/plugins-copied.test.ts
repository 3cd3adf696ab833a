/** A built-in is an operator's plugin: copied out of the repository, it needs other import lines and nothing else. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';

const COPIED = { health: 'health', 'rate-limit': 'rateLimit' };

/** The file with the package's name in place of relative paths; built-ins import nothing else of their repository. */
function copyOf(name: string): string {
  const text = readFileSync(new URL(`../../builtins/${name}.ts`, import.meta.url), 'utf8');
  return text.replaceAll(/ from '(\.{1,2}\/[^']+)\.ts';$/gm, (_, path: string) => {
    const inPackage = new URL(path, 'file:///builtins/').pathname.replace(/^\/(plugins-sdk)\/index$/, '/$1');
    return ` from 'signed-data-proxy${inPackage}';`;
  });
}

describe('built-ins that an operator has copied, with other import lines alone', async () => {
  const files = Object.entries(COPIED).flatMap(([name, exported]) => [
    [`copied-${name}.ts`, copyOf(name)],
    [`${name}.ts`, `export { ${exported} as default } from './copied-${name}.ts';`],
  ]);
  const plugins = Object.keys(COPIED).flatMap((name) => [
    { source: `builtin:${name}`, enabled: false },
    { source: `./${name}.ts` },
  ]);
  const endpoints = [{ name: 'e', path: '/p' }];
  const service = await serviceFor(
    suite,
    {
      server: { rateLimit: { max: 3, window: 3_600_000 } },
      settings: { openapi: true, plugins },
      apis: [{ name: 'a', url: 'http://127.0.0.1:9', auth: { type: 'free' }, endpoints }],
    },
    { files: Object.fromEntries(files) },
  );

  it('are changed as docs/plugins.md shows it of health', () => {
    const page = readFileSync(new URL('../../docs/plugins.md', import.meta.url), 'utf8');
    const shown = /```diff\n(.*?)```/s.exec(page)?.[1] ?? '';
    const original = readFileSync(new URL('../../builtins/health.ts', import.meta.url), 'utf8');
    const importsOf = (text: string, mark: string) =>
      text.split('\n').flatMap((line) => (line.startsWith('import ') ? [mark + line] : []));
    const lines = [...importsOf(original, '-'), ...importsOf(copyOf('health'), '+')];
    assert.deepEqual(shown.trimEnd().split('\n'), lines);
  });

  it('import nothing by a relative path', () => {
    for (const name of Object.keys(COPIED)) {
      assert.doesNotMatch(copyOf(name), /from '\./);
      assert.match(copyOf(name), /from 'signed-data-proxy\/plugins-sdk'/);
      assert.match(copyOf(name), /from 'signed-data-proxy\/builtins\/shared\//);
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
    const ask = async () => (await service.post('a/e')).status;
    // The document was the first of three requests.
    assert.deepEqual([await ask(), await ask(), await ask()], [502, 502, 429]);
  });
});
