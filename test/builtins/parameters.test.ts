/** No value of a parameter leaves its place in the request to the upstream. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hasDotSegment } from '../../builtins/parameters/dot-segments.ts';
import { compilePlacement } from '../../builtins/parameters/placement.ts';
import { isRefusal } from '../../plugins-sdk/index.ts';
import { anyCharacter } from '../support/any-character.ts';

const declared = [
  { name: 'a', in: 'path' },
  { name: 'b', in: 'path' },
  { name: 'q', in: 'query' },
  { name: 'h', in: 'header' },
  { name: 'c', in: 'cookie' },
] as const;

/** Texts that mean something to a URL, a header or a cookie, mixed with any other. */
const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 12 }),
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
      { numRuns: 1000 },
    );
  });

  it('no header or cookie value ends its line or its cookie', () => {
    fc.assert(
      fc.property(text, text, (h, c) => {
        const parts = placed('/{a}/{b}', ['x', 'y', 'z', h, c]);
        const carried = (value: string) => /^[\t\x20-\x7e\x80-\xff]*$/.test(value) && !/^[\t ]|[\t ]$/.test(value);
        assert.equal(parts !== undefined, carried(h) && carried(c) && !c.includes(';'));
        if (parts === undefined) return;
        assert.deepEqual(parts.headers, { h });
        assert.equal(parts.cookie, `c=${c}`);
      }),
      { numRuns: 1000 },
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

/** The same by one pass over the whole text after the other. */
function decodedByPasses(bytes: string): string {
  const character = (code: number) => String.fromCharCode(code);
  const passed = bytes
    .replace(/[\0-\x20\x7f]/g, '')
    .replace(/%(?:u00)?([\da-f]{2})/gi, (_, digits: string) => character(Number.parseInt(digits, 16)))
    .replace(/[\xe0\xf0\xf8\xfc]\x80/g, ([lead = '']) => character({ à: 0xc0, ð: 0xe0, ø: 0xf0, ü: 0xf8 }[lead] ?? 0))
    .replace(/\xe0\x81/g, character(0xc1))
    .replace(/([\xc0\xc1])([\x80-\xbf])/g, (_, lead: string, next: string) =>
      character(((lead.charCodeAt(0) & 1) << 6) | (next.charCodeAt(0) & 0x3f)),
    );
  return passed === bytes ? bytes : decodedByPasses(passed);
}

describe('segments that lead elsewhere', () => {
  const pieces = [
    '.',
    '..',
    '/',
    '\\',
    '%',
    '%2',
    '2e',
    'e',
    '%25',
    '%2f',
    '%5C',
    '%u00',
    ';',
    'x',
    '%c0',
    '%ae',
    '%e0%80',
  ];
  const made = fc.array(fc.constantFrom(...pieces, '%f0', '%80', '%81', '\t', '%09', 'À', '3', '%3'), {
    maxLength: 14,
  });

  it('are found whatever is encoded, as often as it may be', () => {
    let found = 0;
    fc.assert(
      fc.property(
        made.map((parts) => parts.join('')),
        (part) => {
          const decoded = decodedByPasses(Buffer.from(part).toString('latin1'));
          const segments = decoded.split(/[/\\]/).map((segment) => segment.replace(/;.*$/s, ''));
          const expected = segments.some((segment) => segment === '.' || segment === '..');
          assert.equal(hasDotSegment(part), expected, decoded);
          if (expected) found++;
        },
      ),
      { numRuns: 5000 },
    );
    assert.ok(found > 100, `only ${found} of 5000`);
  });

  it('are none where there is no dot and nothing to decode', () => {
    fc.assert(fc.property(fc.string({ unit: anyCharacter }), (part) => /[.%]/.test(part) || !hasDotSegment(part)));
  });
});
