/** An operator's identity is compared with what DNS and the service say. `transcripts/identity.txt` has what asks nobody. */
import assert from 'node:assert/strict';
import { setServers } from 'node:dns';
import { describe, it, type TestContext } from 'node:test';
import { serviceUrl } from '../../cli/identity/health.ts';
import { startDns } from '../support/dns.ts';
import { endsWith, suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';
import { type Ended, folderWith, launchCli, type RunOptions, runCli } from './run.ts';
import { configText } from './service-config.ts';

const OTHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const env = { SERVICE_PRIVATE_KEY: TEST_KEY };

function ended(code: number, stdout: readonly string[], error?: string): Ended {
  const stderr = error === undefined ? '' : `error: ${error}\n`;
  return { code, signal: null, stdout: stdout.map((line) => `${line}\n`).join(''), stderr };
}

/** Looks a domain up. */
function check(t: TestContext, domain: string, words: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return runCli(t, ['identity', '--check', '-d', domain, ...words], options);
}

/** Looks a domain up in a process whose resolver is at that address. */
function checkAt(t: TestContext, server: string, domain: string, address: string): PromiseLike<Ended> {
  const script = `import { setServers } from 'node:dns'; setServers(['${server}'])`;
  const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(script)}`;
  return launchCli(t, ['identity', '--check', '-d', domain, '--address', address], { env: { NODE_OPTIONS } }).ended;
}

function asked(name: string, expected = `${TEST_ADDRESS} (given)`): string[] {
  return [`Expected: ${expected}`, `Looked up: TXT ${name} (system resolver)`];
}

const filler = Array.from({ length: 20 }, (_, index) => [`0x${String(index).padStart(40, '0')}`]);
const dns = await endsWith(
  suite,
  startDns({
    '_node.one.test': [[TEST_ADDRESS]],
    '_node.two.test': [[`${OTHER},${TEST_ADDRESS}`]],
    '_node.other.test': [[OTHER]],
    '_node.odd.test': [[` ${TEST_ADDRESS.toLowerCase()} , ,${TEST_ADDRESS}`], [''], ['v=spf1 -all, 0x12']],
    '_node.upper.test': [[`0X${TEST_ADDRESS.slice(2).toUpperCase()}`]],
    '_node.chunks.test': [[TEST_ADDRESS.slice(0, 10), TEST_ADDRESS.slice(10), `,${OTHER}`]],
    '_node.records.test': [[OTHER], [TEST_ADDRESS]],
    '_node.large.test': [...filler, [TEST_ADDRESS]],
    '_node.xn--bcher-kva.test': [[TEST_ADDRESS]],
    '_node.alias.test': 'alias',
    '_node.text.test': [['v=spf1 -all'], [`${TEST_ADDRESS}0`]],
    '_node.none.test': [],
    '_node.failing.test': 'SERVFAIL',
    '_node.refusing.test': 'REFUSED',
    '_node.silent.test': 'silence',
    '_node.garbage.test': 'garbage',
  }),
);
// The command line runs in this process.
setServers([dns.address]);

describe('identity --check', { concurrency: 4 }, () => {
  const found: [what: string, domain: string, address: string, found: string, record?: string][] = [
    ['an address', 'ONE.test.', TEST_ADDRESS.toLowerCase(), TEST_ADDRESS, 'one.test'],
    ['one of several in one record', 'two.test', TEST_ADDRESS, `${OTHER}, ${TEST_ADDRESS}`],
    ['one of several records', 'records.test', TEST_ADDRESS, `${OTHER}, ${TEST_ADDRESS}`],
    ['a record in several strings', 'chunks.test', TEST_ADDRESS, `${TEST_ADDRESS}, ${OTHER}`],
    ['what is no address', 'odd.test', TEST_ADDRESS, `${TEST_ADDRESS} (and 2 entries that are no addresses)`],
    ['any case', 'upper.test', TEST_ADDRESS, TEST_ADDRESS],
    ['an international domain', 'bücher.test', TEST_ADDRESS, TEST_ADDRESS, 'xn--bcher-kva.test'],
    ['an alias', 'alias.test', OTHER, OTHER],
  ];
  for (const [what, domain, address, list, record = domain] of found) {
    it(`finds ${what}`, async (t) => {
      const expected = `${address === OTHER ? OTHER : TEST_ADDRESS} (given)`;
      const lines = [...asked(`_node.${record}`, expected), `Found: ${list}`, 'Match: yes'];
      assert.deepEqual(await check(t, domain, ['--address', address]), ended(0, lines));
    });
  }

  it('more than a datagram holds', async (t) => {
    const { code, stdout } = await check(t, 'large.test', ['--address', TEST_ADDRESS]);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`, 0x0{38}19, ${TEST_ADDRESS}\nMatch: yes\n$`));
    // A slow machine asks again.
    const questions = new Set(dns.questions.filter((question) => question.includes('large')));
    assert.deepEqual([...questions], ['udp TXT _node.large.test', 'tcp TXT _node.large.test']);
  });

  it('another address does not match: exit code 1', async (t) => {
    const expected = ended(1, [...asked('_node.other.test'), `Found: ${OTHER}`, 'Match: no']);
    assert.deepEqual(await check(t, 'other.test', ['--address', TEST_ADDRESS]), expected);
  });

  it('takes the key in the environment, in the file that --env names, or of a config', async (t) => {
    const cwd = await folderWith(t, { 'a.env': `SERVICE_PRIVATE_KEY=${TEST_KEY}\n`, 'c.yaml': configText() });
    for (const [source, words, options] of [
      ['the key in the environment', [], { env }],
      ['the key in the environment', ['--env', 'a.env'], { cwd }],
      ['the signer of c.yaml', ['-c', 'c.yaml'], { cwd, env }],
    ] as const) {
      const lines = [...asked('_node.one.test', `${TEST_ADDRESS} (${source})`), `Found: ${TEST_ADDRESS}`, 'Match: yes'];
      assert.deepEqual(await check(t, 'one.test', words, options), ended(0, lines));
    }
  });

  it('asks the resolver of the system', async (t) => {
    const lines = [...asked('_node.two.test', `${OTHER} (given)`), `Found: ${OTHER}, ${TEST_ADDRESS}`, 'Match: yes'];
    assert.deepEqual(await checkAt(t, dns.address, 'two.test', OTHER), ended(0, lines));
  });

  const failures: [string, string, string][] = [
    ['a name that does not exist', 'missing', 'there is no such name (NXDOMAIN)'],
    ['a name without TXT records', 'none', 'the name has no TXT record'],
    ['a record without an address', 'text', 'the TXT record holds no address'],
    [
      'a resolver that fails',
      'failing',
      'the resolver failed (SERVFAIL): the name servers of the domain, or its DNSSEC, do not work',
    ],
    ['a resolver that refuses', 'refusing', 'the resolver refuses to answer (REFUSED)'],
    ['an answer that is none', 'garbage', 'the answer is malformed (EBADRESP)'],
  ];
  for (const [what, domain, message] of failures) {
    it(`says so of ${what}`, async (t) => {
      const name = `_node.${domain}.test`;
      const expected = ended(1, asked(name), `${name}: ${message}`);
      assert.deepEqual(await check(t, `${domain}.test`, ['--address', TEST_ADDRESS]), expected);
    });
  }

  it('says so of a resolver that is not there', async (t) => {
    const gone = await startDns({});
    await gone.close();
    const message = '_node.one.test: the resolver cannot be reached (ECONNREFUSED)';
    const expected = ended(1, asked('_node.one.test'), message);
    assert.deepEqual(await checkAt(t, gone.address, 'one.test', TEST_ADDRESS), expected);
  });

  it('says so of a resolver that does not answer', async (t) => {
    // In a process of its own: c-ares gives a server that lets it wait less time for other names.
    const expected = ended(1, asked('_node.silent.test'), '_node.silent.test: no answer within 5000 ms');
    assert.deepEqual(await checkAt(t, dns.address, 'silent.test', TEST_ADDRESS), expected);
  });

  it('asks a service at a URL as it is written', () => {
    assert.equal(serviceUrl('HTTPS://A.example:8443/v1/?'), 'https://a.example:8443/v1');
  });
});

describe('identity --check --url', { concurrency: 4 }, async () => {
  const { service, upstream: server } = await served(suite, { e: {} });
  server.json('/other/health', { status: 'ok', node: OTHER.toLowerCase() });
  server.json('/failing/health', { status: 'ok', node: TEST_ADDRESS }, 503);
  server.json('/mistyped/health', { status: 'ok', node: TEST_ADDRESS.replace('F', 'f') });
  server.json('/nameless/health', { status: 'ok' });
  server.json('/null/health', null);
  server.text('/html/health', '<!doctype html>', { type: 'text/html' });
  server.text('/large/health', JSON.stringify({ node: TEST_ADDRESS, more: 'x'.repeat(4096) }));
  server.on('/silent/health', () => undefined);

  const verify = (t: TestContext, url: string) => check(t, 'one.test', ['--url', url]);
  const lines = (expected: string, url: string, match: string) => [
    ...asked('_node.one.test', `${expected} (${url}/health)`),
    `Found: ${TEST_ADDRESS}`,
    `Match: ${match}`,
  ];

  it('a running service, with or without a slash at the end', async (t) => {
    const expected = ended(0, lines(TEST_ADDRESS, service.url, 'yes'));
    assert.deepEqual(await verify(t, service.url), expected);
    assert.deepEqual(await verify(t, `${service.url}/`), expected);
  });

  it('a service behind a prefix, with another signer', async (t) => {
    assert.deepEqual(await verify(t, `${server.url}/other`), ended(1, lines(OTHER, `${server.url}/other`, 'no')));
  });

  it('says so of a service that is not there', async (t) => {
    const gone = await startUpstream();
    await gone.close();
    const message = `GET ${gone.url} failed: the connection was refused (ECONNREFUSED)`;
    assert.deepEqual(await verify(t, gone.url), ended(1, [], message));
  });

  const NOBODY = 'the answer tells no signer: no JSON object with an address as "node"';
  const answers: [string, string, (url: string) => string][] = [
    ['a status', 'failing', (url) => `${url}/failing/health: answers with status 503, not 200`],
    ['an unknown path', 'missing', (url) => `${url}/missing/health: answers with status 404, not 200`],
    ['a wrong checksum', 'mistyped', (url) => `${url}/mistyped/health: ${NOBODY}`],
    ['no node', 'nameless', (url) => `${url}/nameless/health: ${NOBODY}`],
    ['null', 'null', (url) => `${url}/null/health: ${NOBODY}`],
    ['a page', 'html', (url) => `${url}/html/health: ${NOBODY}`],
    ['too much', 'large', (url) => `GET ${url} failed: the answer is larger than 4096 bytes`],
    ['nothing', 'silent', (url) => `GET ${url} failed: no complete answer within 5000 ms`],
  ];
  for (const [what, path, message] of answers) {
    it(`refuses a health record that is ${what}`, async (t) => {
      assert.deepEqual(await verify(t, `${server.url}/${path}`), ended(1, [], message(server.url)));
    });
  }
});
