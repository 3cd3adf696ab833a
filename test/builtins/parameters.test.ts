import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compilePlacement } from '../../builtins/parameters/placement.ts';
import { isRefusal } from '../../plugins-sdk/index.ts';

const declared = [
  { name: 'a', in: 'path' },
  { name: 'b', in: 'path' },
  { name: 'q', in: 'query' },
  { name: 'h', in: 'header' },
  { name: 'c', in: 'cookie' },
] as const;

/** Texts that mean something to a URL, a header or a cookie, mixed with any other. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc
    .array(
      fc.constantFrom('.', '..', '/', '\\', '%2e', '%2F', '?', '#', '@', ':', '\0', '\r\n', ';', '\t', ' ', '\ud800'),
      { maxLength: 5 },
    )
    .map((parts) => parts.join('')),
);

/** The parts, or undefined where the values are refused. */
function placed(template: string, values: readonly string[]) {
  try {
    return compilePlacement(template, declared)(values);
  } catch (error) {
    assert.ok(isRefusal(error) && error.status === 400 && /^Invalid parameter: [abqhc]$/.test(error.message));
    return undefined;
  }
}

describe('placement of parameters', () => {
  it('no path or query value leaves its place in the resolved URL', () => {
    const templates = ['/v1/{a}/x/{b}', '/v1/{a}{b}/x/y', '/v1/%2e{a}/.{b}/y', '/v1/x-{a}/{b}.json/y'];
    fc.assert(
      fc.property(fc.constantFrom(...templates), text, text, text, (template, a, b, q) => {
        const parts = placed(template, [a, b, q, '', '']);
        if (parts === undefined) return;
        const url = new URL(`http://upstream.example/base${parts.path}?${parts.query}`);
        assert.equal(url.origin, 'http://upstream.example');
        assert.equal(url.pathname, `/base${parts.path}`, 'nothing to normalise');
        assert.equal(url.pathname.split('/').length, 6);
        assert.ok(url.pathname.startsWith('/base/v1/'));
        assert.deepEqual([...url.searchParams], [['q', q]]);
        assert.equal(url.hash, '');
        const expected = template.replace('{a}', () => a).replace('{b}', () => b);
        if (!/[{%]/.test(a + b)) assert.equal(decodeURIComponent(parts.path), decodeURIComponent(expected));
      }),
      { numRuns: 2000 },
    );
  });

  it('no header or cookie value ends its line or its cookie', () => {
    fc.assert(
      fc.property(text, text, (h, c) => {
        const parts = placed('/{a}/{b}', ['x', 'y', 'z', h, c]);
        const carried = (value: string) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
        assert.equal(parts !== undefined, carried(h) && carried(c) && !c.includes(';'));
        if (parts === undefined) return;
        assert.deepEqual(parts.headers, { h });
        assert.equal(parts.cookie, `c=${c}`);
      }),
      { numRuns: 2000 },
    );
  });

  it('places without values are absent', () => {
    const place = compilePlacement('/x', [
      { name: 'q', in: 'query' },
      { name: 'h', in: 'header' },
      { name: 'c', in: 'cookie' },
    ]);
    const nothing = { path: '/x', query: '', headers: {}, cookie: undefined, body: undefined };
    assert.deepEqual(place([undefined, undefined, undefined]), nothing);
  });
});
