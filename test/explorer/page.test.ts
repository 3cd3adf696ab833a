import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';

const UPSTREAM = 'http://upstream.invalid:8123/base';
const MARKUP = '</script><img src=x onerror=alert(1)><!--<script>$&';
const TEXT = `${MARKUP}\u2028\u2029`;

const config = {
  settings: { explorer: true },
  apis: [
    {
      name: MARKUP,
      url: UPSTREAM,
      headers: { Authorization: 'Bearer header-value' },
      auth: [
        { type: 'apiKey', keys: ['client-key-value'] },
        {
          type: 'x402',
          network: 1,
          rpc: 'http://rpc.invalid/rpc-key-value',
          token: `0x${'0'.repeat(40)}`,
          amount: '1',
          recipient: TEST_ADDRESS,
        },
      ],
      endpoints: [
        {
          name: MARKUP,
          description: TEXT,
          path: '/upstream-path/{symbol}',
          parameters: [
            { name: 'symbol', in: 'path', required: true, description: TEXT },
            { name: 'currency', default: 'usd', schema: { enum: ['usd', 'eur'] } },
            { name: 'fixed-name', fixed: 'fixed-value' },
            { name: 'hidden', default: 'secret-value', secret: true, schema: { const: 'secret-value' } },
            { name: 'sizes', in: 'body', default: [1, { unit: 'm' }] },
          ],
          encoding: { type: 'int256', path: '$.price' },
        },
      ],
    },
  ],
};

const DATA = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/;

function onlyText(page: string, element: 'script' | 'style'): string {
  const found = [...page.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'))];
  assert.equal(found.length, 1);
  return found[0]?.[1] ?? '';
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64');

describe('the page of the explorer', async () => {
  const service = await serviceFor(suite, config);
  const response = await fetch(`${service.url}/`);
  const page = await response.text();

  it('is HTML that a browser asks for anew each time', () => {
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(response.headers.get('cache-control'), 'no-cache');
    assertRouteHeaders(response);
  });

  it('comes with a policy that allows its own script and style, by their hashes, and nothing else', () => {
    assert.deepEqual(response.headers.get('content-security-policy')?.split('; '), [
      "default-src 'none'",
      `script-src 'sha256-${sha256(onlyText(page, 'script'))}'`,
      `style-src 'sha256-${sha256(onlyText(page, 'style'))}'`,
      "connect-src 'self'",
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(response.headers.get('cross-origin-opener-policy'), 'same-origin');
  });

  it('is one small file that names no other origin', () => {
    const addresses = new Set(page.match(/\b(?:https?|wss?):\/\/[^\s"'`<>]*/g));
    // Names of markup languages are no addresses that anything is fetched from.
    const names = ['2000/svg', '1998/Math/MathML', '1999/xhtml'].map((name) => `http://www.w3.org/${name}`);
    const others = [...addresses].filter((address) => !names.includes(address));
    assert.deepEqual(others, []);
    assert.ok(Buffer.byteLength(page) < 92_000, `${Buffer.byteLength(page)} bytes`);
  });

  it('holds the endpoints as data that nothing in them can end', () => {
    const text = DATA.exec(page)?.[1] ?? '';
    assert.doesNotMatch(text, /[<>&\u2028\u2029]/);
    const [id] = Object.values(service.ids);
    const ways = [
      { title: 'API key', header: 'X-Api-Key', hints: [] },
      {
        title: 'payment (x402)',
        header: 'X-Payment-Proof',
        hints: [
          'Send the request without a proof to see what to pay, and pay from your wallet.',
          'With the same account sign keccak256(node ‖ endpointId ‖ uint64 expiresAt) as EIP-191 says, and put the proof here as JSON. A payment counts once.',
        ],
        example: { txHash: '0x…', expiresAt: 1700000000, signature: '0x…' },
      },
    ];
    assert.deepEqual(JSON.parse(text), {
      node: TEST_ADDRESS,
      openapi: false,
      endpoints: [
        {
          id,
          api: MARKUP,
          name: MARKUP,
          description: TEXT,
          mode: 'sync',
          modeTitle: 'the answer comes at once',
          auth: ways,
          prices: [{ amount: '1', token: `0x${'0'.repeat(40)}`, network: 1 }],
          parameters: [
            { name: 'symbol', in: 'path', required: true, description: TEXT },
            { name: 'currency', in: 'query', required: false, default: 'usd', schema: { enum: ['usd', 'eur'] } },
            { name: 'hidden', in: 'query', required: false },
            { name: 'sizes', in: 'body', required: false, default: [1, { unit: 'm' }] },
          ],
          reserved: [],
          remarks: [],
          encoding: { type: 'int256', path: '$.price' },
        },
      ],
    });
  });

  it('tells nothing of the upstream, of fixed and secret values, of keys and nodes', () => {
    const private_ = /upstream|header-value|client-key-value|rpc-key-value|fixed-name|fixed-value|secret-value/;
    assert.doesNotMatch(DATA.exec(page)?.[1] ?? '', private_);
    assert.doesNotMatch(page, /upstream\.invalid|(?:header|key|fixed|secret)-value/);
  });

  it('is read, not written to', async () => {
    const posted = await fetch(`${service.url}/`, { method: 'POST' });
    assert.equal(posted.headers.get('allow')?.includes('GET'), true);
    await assertRefused(posted, 405, 'Method Not Allowed');
  });
});

describe('the explorer', () => {
  const endpoints = oneApi(UPSTREAM, { price: {} });

  for (const settings of [{}, { explorer: false }]) {
    it(`is not there with the settings ${JSON.stringify(settings)}`, async (t) => {
      const { url } = await serviceFor(t, { ...endpoints, settings });
      await assertRefused(await fetch(`${url}/`), 404, 'Not Found');
    });
  }

  it('counts as a request like any other', async (t) => {
    const server = { rateLimit: { max: 1 } };
    const { url } = await serviceFor(t, { ...endpoints, server, settings: { explorer: true } });
    assert.equal((await fetch(`${url}/`)).status, 200);
    await assertRefused(await fetch(`${url}/`), 429, 'Too Many Requests');
  });
});

describe('the colours', () => {
  const style = readFileSync(new URL('../../builtins/explorer/page.css', import.meta.url), 'utf8');
  const [light = '', dark = ''] = [...style.matchAll(/:root \{([^}]*)\}/g)].map(([, block]) => block);

  /** Relative luminance (WCAG 2.2). */
  function luminance(hex: string): number {
    const digits = hex.length === 3 ? [...hex].map((digit) => digit + digit).join('') : hex;
    const [red = 0, green = 0, blue = 0] = (digits.match(/../g) ?? [])
      .map((pair) => Number.parseInt(pair, 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function contrast(block: string, one: string, other: string): number {
    const [a = 0, b = 0] = [one, other].map((name) => {
      const [, hex] = new RegExp(`--${name}: #([0-9a-f]+);`).exec(block) ?? [];
      assert.ok(hex, `there is a colour --${name}`);
      return luminance(hex);
    });
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }

  const everywhere = ['ground', 'surface', 'wash', 'good-wash', 'warn-wash', 'bad-wash'];
  const texts: readonly (readonly [string, readonly string[]])[] = [
    ...['ink', 'soft', 'accent'].map((text) => [text, everywhere] as const),
    ['on-accent', ['accent']],
    ['good', ['good-wash']],
    ['warn', ['warn-wash']],
    ['bad', ['ground', 'surface', 'bad-wash']],
  ];
  for (const [name, block] of Object.entries({ light, dark })) {
    it(`have contrast enough to be read (${name})`, () => {
      for (const [text, grounds] of texts) {
        for (const ground of grounds)
          assert.ok(contrast(block, text, ground) >= 4.5, `${text} on ${ground}: ${contrast(block, text, ground)}`);
      }
      for (const ground of ['ground', 'surface', 'good-wash', 'warn-wash', 'bad-wash'])
        assert.ok(contrast(block, 'edge', ground) >= 3, `edge on ${ground}: ${contrast(block, 'edge', ground)}`);
    });
  }
});
