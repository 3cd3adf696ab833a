/** A client is told by its address, and by the proxies that are trusted. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { parse } from 'yaml';
import { clientKey, forwardedClient, normalizeAddress, parseAddress } from '../../lib/http/client-address.ts';

interface Cases {
  readonly addresses: Readonly<Record<string, string>>;
  readonly refused: readonly string[];
  readonly forwarded: Readonly<Record<string, readonly [string | null, boolean | number, string]>>;
  readonly keys: Readonly<Record<string, string>>;
}

const CASES: Cases = parse(readFileSync(new URL('client-address.yaml', import.meta.url), 'utf8'));
const SOCKET = '10.0.0.9';
const LARGEST_HEADER = 16 * 1024;

describe('parseAddress', () => {
  for (const [text, expected] of Object.entries(CASES.addresses)) {
    it(`reads ${text} as ${expected}`, () => assert.equal(parseAddress(text), expected));
  }

  for (const text of [...CASES.refused, `fe80::1%${'e'.repeat(200)}`, '1'.repeat(100_000), ':'.repeat(100_000)]) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))} (${text.length} characters)`, () =>
      assert.equal(parseAddress(text), undefined));
  }

  it('writes IPv6 as the URL standard does', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const expected = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        fc.pre(!expected.startsWith('::ffff:') || expected.split(':').length !== 5);
        fc.pre(!/^::\d+\./.test(text));
        assert.equal(parseAddress(text), expected);
      }),
    );
  });

  it('reads what it wrote as the same address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const address = parseAddress(text);
        assert.ok(address !== undefined);
        assert.equal(parseAddress(address), address);
      }),
    );
  });

  it('reads an IPv4 address and the IPv6 address that maps it alike', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        assert.equal(parseAddress(text), text);
        assert.equal(parseAddress(`::ffff:${text}`), text);
      }),
    );
  });

  it('throws for no text', () => {
    const pieces = fc.constantFrom('1', '255', '.', ':', '::', '%', 'f', 'ffff', '[', ']', '"', ' ', '0x', '\0', 'é');
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces).map((parts) => parts.join('')),
        ),
        (text) => {
          parseAddress(text);
          clientKey(text);
          forwardedClient(text, text, true);
          forwardedClient(text, text, 1);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe('normalizeAddress', () => {
  it('gives the canonical text of an address', () => assert.equal(normalizeAddress('::ffff:127.0.0.1'), '127.0.0.1'));
  it('leaves what is no address as it is', () => {
    assert.equal(normalizeAddress(''), '');
    assert.equal(normalizeAddress('@unix'), '@unix');
  });
});

describe('forwardedClient', () => {
  for (const [what, [header, trust, expected]] of Object.entries(CASES.forwarded)) {
    const client = expected === 'socket' ? SOCKET : expected;
    it(what, () => assert.equal(forwardedClient(SOCKET, header ?? undefined, trust), client));
  }

  it('gives the canonical text of the socket address', () => {
    assert.equal(forwardedClient('::ffff:10.0.0.9', undefined, false), '10.0.0.9');
    assert.equal(forwardedClient('fe80::1%eth0', 'nonsense', true), 'fe80::1');
    assert.equal(forwardedClient('', undefined, true), '');
  });

  for (const filler of [',', ' ', '"', '[', ':', '1', '1,', '1.', ':::,', '[,', '1.2.3.4:', '%']) {
    it(`finds nothing in 16 KB of ${JSON.stringify(filler)}`, () => {
      const header = filler.repeat(LARGEST_HEADER / filler.length);
      for (const trust of [true, 1, 2, LARGEST_HEADER]) assert.equal(forwardedClient(SOCKET, header, trust), SOCKET);
    });
  }

  it('finds an address at the far end of 16 KB', () => {
    const junk = 'x,'.repeat(LARGEST_HEADER / 2);
    assert.equal(forwardedClient(SOCKET, `${junk}1.1.1.1`, true), '1.1.1.1');
    assert.equal(forwardedClient(SOCKET, `1.1.1.1,${junk}`, LARGEST_HEADER / 2 + 2), '1.1.1.1');
  });

  it('gives an address that does not keep the header in memory', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    const before = process.memoryUsage().heapUsed;
    const kept: string[] = [];
    for (let i = 0; i < 2000; i++) {
      const address = i % 2 === 0 ? `100.100.${100 + (i % 100)}.100` : `2001:db8:aaaa:bbbb:cccc:dddd:eeee:${i}`;
      const header = Buffer.from(`${address},${'x'.repeat(LARGEST_HEADER)}`).toString('latin1');
      kept.push(forwardedClient(SOCKET, header, true));
    }
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.equal(kept.length, 2000);
    assert.ok(grown < 8 * 1024 * 1024, `${grown} bytes are held for 2000 addresses`);
  });
});

describe('clientKey', () => {
  for (const [ip, key] of Object.entries(CASES.keys)) {
    it(`keys ${JSON.stringify(ip)} as ${JSON.stringify(key)}`, () => assert.equal(clientKey(ip), key));
  }

  it('is one key for all of a /64 and another for the next /64', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16));
    const half = fc.tuple(group, group, group, group).map((groups) => groups.join(':'));
    fc.assert(
      fc.property(half, half, half, half, (network, other, host, host2) => {
        fc.pre(!isIPv4(normalizeAddress(`${network}:${host}`)) && !isIPv4(normalizeAddress(`${network}:${host2}`)));
        assert.equal(clientKey(`${network}:${host}`), clientKey(`${network}:${host2}`));
        assert.equal(clientKey(`${network}:${host}`) === clientKey(`${other}:${host}`), network === other);
      }),
    );
  });
});
