/** ip-allow-list lets in the addresses of its list alone. */
import assert from 'node:assert/strict';
import { BlockList, isIPv6 } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Check } from 'typebox/value';
import ipAllowList, { configSchema } from '../../../examples/plugins/ip-allow-list.ts';
import { testPlugin } from '../../../service/testing.ts';

const REFUSED = { refused: { status: 403, message: 'Address not allowed' } };

/** Which of the addresses a list lets in. */
async function admitted(allow: string[], addresses: readonly string[]): Promise<string[]> {
  const harness = await testPlugin(ipAllowList({ allow }));
  const inside: string[] = [];
  for (const ip of addresses) {
    const outcome = await harness.run('onHttpRequest', { ip });
    if ('passed' in outcome) inside.push(ip);
    else assert.deepEqual(outcome, REFUSED);
  }
  assert.deepEqual(harness.complaints, []);
  return inside;
}

describe('ip-allow-list', () => {
  it('lets in the addresses and networks of the list', async () => {
    const allow = ['203.0.113.7', '10.0.0.0/8', '192.168.1.128/25', '2001:db8::/32', '::1'];
    const inside = [
      '203.0.113.7',
      '10.0.0.0',
      '10.255.255.255',
      '192.168.1.128',
      '192.168.1.255',
      '2001:db8::',
      '2001:0DB8:ffff:ffff:ffff:ffff:ffff:ffff',
      '::1',
      '0:0:0:0:0:0:0:1',
    ];
    const outside = [
      '203.0.113.6',
      '203.0.113.8',
      '9.255.255.255',
      '11.0.0.0',
      '192.168.1.127',
      '192.168.2.128',
      '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
      '2001:db9::',
      '::2',
      '::',
      '127.0.0.1',
    ];
    assert.deepEqual(await admitted(allow, [...inside, ...outside]), inside);
  });

  it('takes an IPv4-mapped address for what it is, on both sides', async () => {
    const mapped = ['::ffff:10.1.2.3', '::FFFF:0a01:0203', '10.1.2.3'];
    assert.deepEqual(await admitted(['10.0.0.0/8'], mapped), mapped);
    assert.deepEqual(await admitted(['::ffff:10.0.0.0/104'], mapped), mapped);
    assert.deepEqual(await admitted(['::ffff:10.1.2.3'], [...mapped, '10.1.2.4', '::ffff:10.1.2.4']), mapped);
    assert.deepEqual(await admitted(['::ffff:0.0.0.0/96'], [...mapped, '::1']), mapped);
  });

  it('keeps the two families apart', async () => {
    const addresses = ['10.1.2.3', '::a01:203', '2001:db8::1'];
    assert.deepEqual(await admitted(['0.0.0.0/0'], addresses), ['10.1.2.3']);
    assert.deepEqual(await admitted(['::/0'], addresses), ['::a01:203', '2001:db8::1']);
  });

  it('refuses a client whose address is unknown', async () => {
    const allow = ['0.0.0.0/0', '::/0'];
    assert.deepEqual(await admitted(allow, ['', 'unknown', '10.0.0', '010.0.0.1', '10.0.0.256', '1::2::3']), []);
  });

  it('stops start-up on an entry that is neither an address nor a network, naming it', () => {
    const invalid = [
      '',
      ' 10.0.0.1',
      '10.0.0.1/',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      '10.0.0.0/255.0.0.0',
      '10.0.0',
      '10.0.0.256',
      '010.0.0.1',
      '0x0a.0.0.1',
      '10.0.0.1:80',
      '2001:db8::/129',
      '2001:db8',
      '2001:db8::1::',
      '1:2:3:4:5:6:7:8:9',
      '[::1]',
      '::g',
      '::ffff:10.0.0.0/95',
      'localhost',
      '*',
    ];
    for (const entry of invalid) {
      assert.throws(() => ipAllowList({ allow: ['::1', entry] }), {
        message: `allow[1]: "${entry}" is neither an IP address nor a network such as 10.0.0.0/8`,
      });
    }
  });

  it('stops start-up on a network whose address is not its first', () => {
    for (const entry of ['10.0.0.1/8', '2001:db8::1/32']) {
      const length = entry.split('/')[1];
      assert.throws(() => ipAllowList({ allow: [entry] }), {
        message: `allow[0]: "${entry}" has bits set behind its /${length}`,
      });
    }
  });

  it('agrees with the block list of node', async () => {
    const address = fc.oneof(
      fc.ipV4(),
      fc.ipV6().filter((ip) => isIPv6(ip) && !ip.includes('.')),
    );
    const anyNetwork = fc.tuple(address, fc.nat(128), address, fc.boolean());
    await fc.assert(
      fc.asyncProperty(anyNetwork, async ([base, length, other, near]) => {
        const width = isIPv6(base) ? 128 : 32;
        const digits = length % (width + 1);
        const list = new BlockList();
        list.addSubnet(base, digits, width === 32 ? 'ipv4' : 'ipv6');
        const network = `${firstOf(base, digits)}/${digits}`;
        const client = near ? base : other;
        // Node lets an IPv4 address into an IPv6 network that its mapped form is in.
        const expected = isIPv6(client) === isIPv6(base) && list.check(client, isIPv6(client) ? 'ipv6' : 'ipv4');
        assert.deepEqual(await admitted([network], [client]), expected ? [client] : []);
      }),
    );
  });

  it('describes its config', () => {
    assert.equal(Check(configSchema, { allow: ['::1'] }), true);
    for (const wrong of [{}, { allow: [] }, { allow: '::1' }, { allow: [1] }, { allow: ['::1'], deny: [] }])
      assert.equal(Check(configSchema, wrong), false, JSON.stringify(wrong));
  });
});

/** The first address of the network of so many digits that an address is in. */
function firstOf(address: string, digits: number): string {
  const v6 = isIPv6(address);
  const size = v6 ? 16 : 8;
  const groups = v6
    ? new URL(`http://[${address}]`).hostname
        .slice(1, -1)
        .split('::')
        .map((part) => part.split(':').filter(Boolean))
    : [address.split('.'), []];
  const [head = [], tail = []] = groups;
  const filled = [...head, ...Array(Math.max((v6 ? 8 : 4) - head.length - tail.length, 0)).fill('0'), ...tail];
  const cut = filled.map((group, index) => {
    const kept = Math.min(Math.max(digits - index * size, 0), size);
    return (Number.parseInt(group, v6 ? 16 : 10) >> (size - kept)) << (size - kept);
  });
  return cut.map((number) => number.toString(v6 ? 16 : 10)).join(v6 ? ':' : '.');
}
