import { describe, it } from 'node:test';
import { encodingsFor } from '../support/encodings.ts';
import { suite } from '../support/lifetime.ts';

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
});
