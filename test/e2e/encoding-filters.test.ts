/** Filters in the paths of operators select as documented, in bounded time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, runCli } from '../cli/run.ts';
import { encodingsFor } from '../support/encodings.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi } from '../support/service.ts';

const AT = 'apis[0].endpoints[0].encoding.path';
const pinned = (path: string) =>
  oneApi('https://upstream.example', { e: { encoding: { type: 'int256', path, exact: true } } });

const DOCUMENT = {
  wanted: 'ETH',
  pairs: [
    { id: 'BTC', v: 1 },
    { id: 'ETH', v: 2, tags: [{ t: 'x' }], s: '(x' },
  ],
  last: [5, 7],
};
const accepted: [string, bigint][] = [
  ["$.pairs[?(@.id=='ETH')].v", 2n],
  ["$.pairs[?(@['id']=='ETH' && (@.v>1))].v", 2n],
  ["$.pairs[?(@.id.startsWith('E'))].v", 2n],
  ['$.pairs[?(!(@.tags))].v', 1n],
  ["$.pairs[?(@.tags[?(@.t=='x')])].v", 2n],
  ['$.pairs[?(@.id==@root.wanted)].v', 2n],
  ["$..[?(@.s=='(x')].v", 2n],
  ["$.pairs[?(@.id!=')]' && @.s)].v", 2n],
  ['$.last[(@.length-1)]', 7n],
  ['$.last[-1:]', 7n],
  ['$.last[1]', 7n],
];

describe('filters of operators', async () => {
  const encodings = accepted.map(([path], i) => [`e${i}`, { type: 'int256', path }]);
  const { signs } = await encodingsFor(suite, Object.fromEntries(encodings));

  it('those that a config may hold find their values', async () => {
    for (const [i, [, value]] of accepted.entries()) await signs([value], `e${i}`, JSON.stringify(DOCUMENT));
  });

  it('`config validate` says so, and exits with 1', async (t) => {
    const spaced = pinned("$.p[? (@.id=='X')].v");
    const cwd = await folderWith(t, { 'c.yaml': stringify({ version: '1.0', ...spaced }) });
    assert.deepEqual(await runCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd }), {
      code: 1,
      signal: null,
      stdout: '',
      stderr: `error: ${AT}: [? (@.id=='X')]: this is taken for a name: write [?(@.id=='X')] (api/e, line 12)\n`,
    });
  });
});
