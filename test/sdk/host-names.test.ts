/** Names are looked up once, and a dead one hurts nobody. */
import assert from 'node:assert/strict';
import { getServers, type LookupAddress, setServers } from 'node:dns';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import type { Found } from '../../lib/http/host-names/dns.ts';
import { listedAddresses, ParsedFile } from '../../lib/http/host-names/files.ts';
import { HostNames, UnknownHost } from '../../lib/http/host-names/index.ts';
import { startDns } from '../support/dns.ts';

const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const v6 = (address: string): LookupAddress => ({ address, family: 6 });

function find(names: HostNames, host: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    names.find(host, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });
}

/** A look-up that ends as a test says. */
class Outcome {
  resolve: (found: Found) => void = () => undefined;
  reject: (error: Error) => void = () => undefined;
  readonly promise = new Promise<Found>((resolve, reject) => {
    Object.assign(this, { resolve, reject });
  });
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('look-ups of host names', () => {
  const clock = { now: 0 };
  /** Look-ups that have begun, and how they end. */
  let begun: string[] = [];
  let outcomes: Map<string, Outcome>;
  let names: HostNames;
  const outcome = (host: string) => {
    const known = outcomes.get(host) ?? new Outcome();
    outcomes.set(host, known);
    return known;
  };

  beforeEach(() => {
    clock.now = 0;
    begun = [];
    outcomes = new Map();
    names = new HostNames({
      now: () => clock.now,
      resolve: (host) => {
        begun.push(host);
        return outcome(host).promise;
      },
    });
  });
  afterEach(() => names.close());

  it('are one for all who ask for a name meanwhile', async () => {
    const found = [1, 2, 3].map(() => find(names, 'a.test'));
    const other = find(names, 'b.test');
    assert.deepEqual(begun, ['a.test', 'b.test']);
    outcome('a.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 5000 });
    assert.deepEqual(await Promise.all(found), Array(3).fill([v4('192.0.2.1')]));
    outcome('b.test').reject(new UnknownHost('ENOTFOUND'));
    await assert.rejects(other, { name: 'UnknownHost', code: 'ENOTFOUND' });
  });

  for (const [ttl, kept] of [
    [0, 1000],
    [30_000, 30_000],
    [86_400_000, 60_000],
  ] as const) {
    it(`are good for ${kept} ms where the name's servers say ${ttl} ms`, async () => {
      outcome('a.test').resolve({ addresses: [v4('192.0.2.1')], ttl });
      await find(names, 'a.test');
      clock.now += kept - 1;
      await find(names, 'a.test');
      assert.deepEqual(begun, ['a.test']);
      clock.now += 1;
      await find(names, 'a.test');
      assert.deepEqual(begun, ['a.test', 'a.test']);
    });
  }

  it('that find nothing are not made again for a second', async () => {
    outcome('a.test').reject(new Error('whatever it was'));
    await assert.rejects(find(names, 'a.test'), { code: 'EAI_AGAIN' });
    clock.now += 999;
    await assert.rejects(find(names, 'a.test'), { code: 'EAI_AGAIN' });
    assert.deepEqual(begun, ['a.test']);
    clock.now += 1;
    outcomes.clear();
    outcome('a.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 0 });
    assert.deepEqual(await find(names, 'a.test'), [v4('192.0.2.1')]);
  });

  it('can be left by one without the others, and are over for all when they are closed', async () => {
    const heard: string[] = [];
    const leave = names.find('a.test', () => heard.push('first'));
    names.find('a.test', () => heard.push('second'));
    names.find('b.test', () => heard.push('closed'));
    leave();
    outcome('a.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 1 });
    await settle();
    names.close();
    outcome('b.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 1 });
    await settle();
    assert.deepEqual(heard, ['second']);
  });

  it('answer the others when one of those who wait throws', async () => {
    const heard: string[] = [];
    names.find('a.test', () => {
      throw new Error('careless');
    });
    names.find('a.test', (_, [first]) => heard.push(first?.address ?? 'none'));
    outcome('a.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 1000 });
    await settle();
    assert.deepEqual(heard, ['192.0.2.1']);
  });

  it('are needed for no IP address', async () => {
    assert.deepEqual(await find(names, '192.0.2.9'), [v4('192.0.2.9')]);
    assert.deepEqual(await find(names, '2001:db8::9'), [v6('2001:db8::9')]);
    assert.deepEqual(begun, []);
  });

  it('serve as an option of `connect`, for all addresses or the first of a family', async () => {
    outcome('a.test').resolve({ addresses: [v6('2001:db8::1'), v4('192.0.2.1')], ttl: 1000 });
    const ask = (options: object) =>
      new Promise((resolve) => names.lookup('a.test', options, (error, ...rest) => resolve([error, ...rest])));
    assert.deepEqual(await ask({ all: true }), [null, [v6('2001:db8::1'), v4('192.0.2.1')]]);
    assert.deepEqual(await ask({}), [null, '2001:db8::1', 6]);
    assert.deepEqual(await ask({ family: 4 }), [null, '192.0.2.1', 4]);
    assert.deepEqual(await ask({ family: 'IPv4', all: true }), [null, [v4('192.0.2.1')]]);
    outcome('b.test').resolve({ addresses: [v4('192.0.2.1')], ttl: 1000 });
    const none = await new Promise((resolve) => names.lookup('b.test', { family: 6 }, resolve));
    assert.ok(none instanceof UnknownHost);
    assert.equal(none.code, 'ENOTFOUND');
  });
});

describe('host names', async () => {
  let names: HostNames;
  const servers = getServers();

  const dns = await startDns({
    'four.test': { A: ['192.0.2.1', '192.0.2.2'], ttl: 7 },
    'six.test': { AAAA: ['2001:db8::1'] },
    'both.test': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
    'half-dead.test': { A: ['192.0.2.3'], AAAA: 'silence' },
    'empty.test': {},
    'broken.test': 'SERVFAIL',
    'dead.test': 'silence',
  });
  setServers([dns.address]);

  after(async () => {
    setServers(servers);
    await dns.close();
  });
  beforeEach(() => {
    names = new HostNames();
    dns.questions.length = 0;
  });
  afterEach(() => names.close());

  it('are asked for over DNS, for both families at once', async () => {
    assert.deepEqual(await find(names, 'four.test'), [v4('192.0.2.1'), v4('192.0.2.2')]);
    assert.deepEqual(await find(names, 'six.test'), [v6('2001:db8::1')]);
    const all = await find(names, 'both.test');
    assert.deepEqual(new Set(all), new Set([v4('192.0.2.1'), v6('2001:db8::1')]));
    const asked = ['four', 'six', 'both'].flatMap((name) => [`udp A ${name}.test`, `udp AAAA ${name}.test`]);
    assert.deepEqual(dns.questions.toSorted(), asked.toSorted());
  });

  it('are found where a sandbox hides the addresses of the machine', async () => {
    const { networkInterfaces } = os;
    os.networkInterfaces = () => {
      throw new Error('uv_interface_addresses returned Unknown system error 97');
    };
    syncBuiltinESMExports();
    try {
      assert.deepEqual(await find(names, 'four.test'), [v4('192.0.2.1'), v4('192.0.2.2')]);
    } finally {
      os.networkInterfaces = networkInterfaces;
      syncBuiltinESMExports();
    }
  });

  it('have their IPv4 addresses also where the servers ignore questions for IPv6', async () => {
    assert.deepEqual(await find(names, 'half-dead.test'), [v4('192.0.2.3')]);
  });

  it('are not waited for by others while their servers are silent', async () => {
    let heard = false;
    names.find('dead.test', () => {
      heard = true;
    });
    for (let count = 0; count < 20; count++) names.find('dead.test', () => undefined);
    assert.deepEqual(await find(names, 'four.test'), [v4('192.0.2.1'), v4('192.0.2.2')]);
    assert.equal(heard, false);
  });

  it('that nobody knows are unknown: DNS and the system have been asked', async () => {
    for (const name of ['unknown.test', 'empty.test', 'broken.test', 'a..b'])
      await assert.rejects(find(names, name), { code: 'ENOTFOUND' }, name);
  });

  it('that DNS does not know may be known to the system', async () => {
    // Its resolver takes this for 127.0.0.1.
    assert.deepEqual(await find(names, '127.1'), [v4('127.0.0.1')]);
  });

  it('below localhost never leave the machine', async () => {
    const loopback = [v4('127.0.0.1'), v6('::1')];
    assert.deepEqual(await find(names, 'some.localhost'), loopback);
    assert.deepEqual(await find(names, 'Some.LOCALHOST.'), loopback);
    const plain = await find(names, 'localhost');
    assert.ok(plain.every(({ address }) => loopback.some((other) => other.address === address)) && plain.length > 0);
    assert.deepEqual(dns.questions, []);
  });
});

describe('the files of the system', () => {
  it('hosts: addresses of each name, in their order, whatever the case; what is no line of it is skipped', () => {
    const text = [
      '# comment',
      '127.0.0.1\tlocalhost  Box # this machine',
      '::1 localhost',
      '',
      '10.0.0.1 db db.internal',
      '10.0.0.2 DB',
      '10.0.0.1 db',
      'no-address name',
      '10.0.0.3',
    ].join('\r\n');
    const expected = {
      localhost: [v4('127.0.0.1'), v6('::1')],
      box: [v4('127.0.0.1')],
      db: [v4('10.0.0.1'), v4('10.0.0.2')],
      'db.internal': [v4('10.0.0.1')],
      name: [],
      machine: [],
      '10.0.0.3': [],
    };
    for (const [name, addresses] of Object.entries(expected))
      assert.deepEqual(listedAddresses(text).get(name) ?? [], addresses, name);
  });

  it('a file is parsed anew when it has changed, is empty when it is gone, and stays as it was where it cannot be read', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'sdp-hosts-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'hosts');
    let parsed = 0;
    const file = new ParsedFile(path, (text) => {
      parsed += 1;
      return text;
    });
    assert.equal(file.read(), '');
    writeFileSync(path, 'one');
    assert.deepEqual([file.read(), file.read(), parsed], ['one', 'one', 2]);
    rmSync(path);
    mkdirSync(path);
    assert.equal(file.read(), 'one');
    rmSync(path, { recursive: true });
    assert.equal(file.read(), '');
    writeFileSync(path, 'three');
    assert.equal(file.read(), 'three');
  });
});
