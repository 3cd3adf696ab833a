/** A client is told by its address, and by the proxies that are trusted. */
import assert from 'node:assert/strict';
import { isIPv4 } from 'node:net';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { clientKey, forwardedClient, normalizeAddress, parseAddress } from '../../lib/http/client-address.ts';

const SOCKET = '10.0.0.9';
const LARGEST_HEADER = 16 * 1024;

describe('parseAddress', () => {
  const canonical: Record<string, string> = {
    '1.2.3.4': '1.2.3.4',
    '0.0.0.0': '0.0.0.0',
    '255.255.255.255': '255.255.255.255',
    '::': '::',
    '::1': '::1',
    '2001:DB8::0001': '2001:db8::1',
    '2001:0db8:0000:0000:0000:0000:0000:0001': '2001:db8::1',
    // RFC 5952, 4.2.2 and 4.2.3: one zero group stays; the longest run is compressed, the first of equals.
    '2001:db8:0:1:1:1:1:1': '2001:db8:0:1:1:1:1:1',
    '2001:0:0:1:0:0:0:1': '2001:0:0:1::1',
    '2001:db8:0:0:1:0:0:1': '2001:db8::1:0:0:1',
    '::ffff:1.2.3.4': '1.2.3.4',
    '::FFFF:102:304': '1.2.3.4',
    '0:0:0:0:0:ffff:192.0.2.128': '192.0.2.128',
    '::ffff:1.2.3.4%eth0': '1.2.3.4',
    'fe80::1%eth0': 'fe80::1',
    'fe80::1%25eth0': 'fe80::1',
    'fe80::1%1.2.3.4': 'fe80::1',
    '::1.2.3.4': '::102:304',
    '64:ff9b::192.0.2.33': '64:ff9b::c000:221',
    '::ffff:0:1.2.3.4': '::ffff:0:102:304',
  };
  for (const [text, expected] of Object.entries(canonical)) {
    it(`reads ${text} as ${expected}`, () => assert.equal(parseAddress(text), expected));
  }

  const refused = [
    '',
    ' ',
    'unknown',
    '_hidden',
    'localhost',
    '1.2.3',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '010.0.0.1',
    '1.2.3.256',
    '1.2.3.4.5',
    '1.2.3.4%eth0',
    '1.2.3.4:80',
    '1.2.3.4/32',
    ' 1.2.3.4',
    '1.2.3.4\n',
    '1.2.3.4\0',
    '[::1]',
    ':::',
    '1::2::3',
    'fe80::1%',
    '::ffff:01.2.3.4',
    '12345::',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '१.२.३.४',
    `fe80::1%${'e'.repeat(200)}`,
    '1'.repeat(100_000),
    ':'.repeat(100_000),
  ];
  for (const text of refused) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))} (${text.length} characters)`, () =>
      assert.equal(parseAddress(text), undefined));
  }

  it('writes IPv6 as the URL standard does', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const expected = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        fc.pre(!expected.startsWith('::ffff:') || expected.split(':').length !== 5);
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
  type Row = [what: string, header: string | undefined, trust: boolean | number, expected: string];
  const rows: Row[] = [
    ['the header is ignored without trust', '1.1.1.1', false, SOCKET],
    ['no header', undefined, true, SOCKET],
    ['no header, counted', undefined, 1, SOCKET],
    ['an empty header', '', true, SOCKET],
    ['an empty header, counted', '', 1, SOCKET],

    ['true: the left-most entry', '1.1.1.1, 2.2.2.2, 3.3.3.3', true, '1.1.1.1'],
    ['true: the left-most that parses', 'unknown, , 999.1.1.1, 2.2.2.2, 3.3.3.3', true, '2.2.2.2'],
    ['true: the last entry when no other parses', 'a,b,,4.4.4.4', true, '4.4.4.4'],
    ['true: none parses', 'unknown, _x, 127.1', true, SOCKET],
    ['true: IPv6 in canonical text', '2001:DB8:0::1', true, '2001:db8::1'],
    ['true: IPv4-mapped', '::ffff:1.2.3.4', true, '1.2.3.4'],
    ['true: a port after IPv4', '1.2.3.4:555, 2.2.2.2', true, '1.2.3.4'],
    ['true: a port after IPv6 in brackets', '[2001:db8::1]:80', true, '2001:db8::1'],
    ['true: brackets without a port', '[::1]', true, '::1'],
    ['true: brackets round a mapped address', '[::ffff:1.2.3.4]:80', true, '1.2.3.4'],
    ['true: quotes', '"[2001:db8::1]:80", 2.2.2.2', true, '2001:db8::1'],
    ['true: white space', ' \t 1.2.3.4 \t , 2.2.2.2', true, '1.2.3.4'],
    ['true: IPv6 without brackets has no port', '2001:db8::1:8080', true, '2001:db8::1:8080'],
    ['true: brackets round IPv4 are no address', '[1.2.3.4]', true, SOCKET],
    ['true: a port that is no number', '1.2.3.4:http', true, SOCKET],
    ['true: an empty port', '1.2.3.4:', true, SOCKET],
    ['true: two ports', '1.2.3.4:1:2', true, SOCKET],
    ['true: half a quote', '"1.2.3.4', true, SOCKET],
    ['true: one quote only', '"', true, SOCKET],
    ['true: a semicolon does not separate', '1.1.1.1;2.2.2.2', true, SOCKET],

    ['1: the last entry', '1.1.1.1, 2.2.2.2, 3.3.3.3', 1, '3.3.3.3'],
    ['2: the last but one', '1.1.1.1, 2.2.2.2, 3.3.3.3', 2, '2.2.2.2'],
    ['3: the first of three', '1.1.1.1, 2.2.2.2, 3.3.3.3', 3, '1.1.1.1'],
    ['4: absent', '1.1.1.1, 2.2.2.2, 3.3.3.3', 4, SOCKET],
    ['a very large number', '1.1.1.1', Number.MAX_SAFE_INTEGER, SOCKET],
    ['1: no address, whatever else the header holds', '1.1.1.1, unknown', 1, SOCKET],
    ['2: no address', '1.1.1.1, 127.1, 3.3.3.3', 2, SOCKET],
    ['1: an empty entry counts', '1.1.1.1,', 1, SOCKET],
    ['2: an empty entry counts', '1.1.1.1,', 2, '1.1.1.1'],
    ['2: an empty first entry', ',1.1.1.1', 2, SOCKET],
    ['3: nothing before an empty first entry', ',1.1.1.1', 3, SOCKET],
    ['1: a port', '1.1.1.1, 2.2.2.2:80', 1, '2.2.2.2'],
    ['1: a client cannot push an entry in from the left', '9.9.9.9, 8.8.8.8, 2.2.2.2', 1, '2.2.2.2'],

    ['0 is no trust', '1.1.1.1', 0, SOCKET],
    ['a negative number is no trust', '1.1.1.1', -1, SOCKET],
    ['a fraction is no trust', '1.1.1.1, 2.2.2.2', 1.5, SOCKET],
    ['NaN is no trust', '1.1.1.1', Number.NaN, SOCKET],
    ['infinity is no trust', '1.1.1.1', Number.POSITIVE_INFINITY, SOCKET],
  ];
  for (const [what, header, trust, expected] of rows) {
    it(what, () => assert.equal(forwardedClient(SOCKET, header, trust), expected));
  }

  it('gives the canonical text of the socket address', () => {
    assert.equal(forwardedClient('::ffff:10.0.0.9', undefined, false), '10.0.0.9');
    assert.equal(forwardedClient('fe80::1%eth0', 'nonsense', true), 'fe80::1');
    assert.equal(forwardedClient('', undefined, true), '');
  });

  for (const filler of [',', ' ', '"', '[', ':', '1', '1,', '1.', ':::,', '[,', '1.2.3.4:', '%']) {
    it(`finds nothing in 16 KB of ${JSON.stringify(filler)}`, () => {
      const header = filler.repeat(LARGEST_HEADER / filler.length);
      for (const trust of [true, 1, 2, LARGEST_HEADER]) {
        assert.equal(forwardedClient(SOCKET, header, trust), SOCKET);
      }
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
  const keys: Record<string, string> = {
    '1.2.3.4': '1.2.3.4',
    '::ffff:1.2.3.4': '1.2.3.4',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:db8:1:2::': '2001:db8:1:2::/64',
    '2001:DB8:1:2:ffff:ffff:ffff:ffff': '2001:db8:1:2::/64',
    '2001:db8:1:3::1': '2001:db8:1:3::/64',
    '2001:db8::1': '2001:db8::/64',
    '0:0:0:1::1': '0:0:0:1::/64',
    'fe80::1%eth0': 'fe80::/64',
    '::1': '::/64',
    '': '',
    'no address': 'no address',
  };
  for (const [ip, key] of Object.entries(keys)) {
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
