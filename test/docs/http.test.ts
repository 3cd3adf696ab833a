/** docs/http.md has each error of the service, and no other. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { INEXACT, invalidParameter, TOO_DEEP } from '../../builtins/shared/parameter-value.ts';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { readPage } from '../support/docs.ts';
import { TEST_KEY as KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { walk } from './walk.ts';

const PAGE = 'docs/http.md';

it(PAGE, async (t) => {
  const upstream = await upstreamFor(t, { '*': faults.text('{"symbol":"ETHUSD","price":2064.012345678901234567}') });
  await walk(t, PAGE, {
    env: { SERVICE_PRIVATE_KEY: KEY },
    instead: { 'http://127.0.0.1:4000': upstream.url },
  });
});

/** Status and text of every refusal that is written in the source of a folder; `<…>` stands for what varies. */
async function refusalsIn(folder: string): Promise<string[]> {
  const names = await readdir(join(PACKAGE_ROOT, folder), { recursive: true });
  const sources = names.filter((name) => name.endsWith('.ts') && !name.startsWith('explorer/'));
  const texts = await Promise.all(sources.map((name) => readFile(join(PACKAGE_ROOT, folder, name), 'utf8')));
  return texts.flatMap((text) => [
    ...[...text.matchAll(/new Refusal\((\d{3}), (?:'([^']*)'|`((?:\\.|[^`\\])*)`)/g)].map(
      ([, status, plain, template = '']) =>
        `${status} ${plain ?? template.replace(/\\`/g, '`').replace(/\$\{[^}]*\}/g, '<…>')}`,
    ),
    ...(text.includes('new Refusal(400, TOO_DEEP') ? [`400 ${TOO_DEEP}`] : []),
    ...[...text.matchAll(/new Refusal\((\d{3}), invalidParameter\([^,()]+(?:, (\w+))?\)/g)].map(([, status, why]) => {
      const reason = why === 'INEXACT' ? INEXACT : why && '<…>';
      return `${status} ${invalidParameter('<…>', reason)}`;
    }),
  ]);
}

it('docs/http.md has a row for every error that the service has a text for, and no other', async () => {
  const page = await readPage(PAGE);
  const rows = [...page.matchAll(/^\| (\d{3}) \| (?:`` ?(.*?) ?``|`(.*?)`|\(.*?\)) \|/gm)].map(
    ([, status, long, short]) => `${status} ${(long ?? short ?? 'Payment required').replace(/<[^>]*>/g, '<…>')}`,
  );
  const refusals = (
    await Promise.all(['builtins', 'http', 'kernel', 'lib', 'plugins-sdk', 'service'].map(refusalsIn))
  ).flat();
  const normal = (text: string) => text.replace(/_(?:<…>|path)/, '<…>');
  // Nobody reads a 499: the client has gone.
  const sent = new Set(refusals.map(normal).filter((text) => !text.startsWith('499 ')));
  assert.deepEqual(rows.map(normal).toSorted(), [...sent].toSorted());
});
