/** An operator's identity is shown and verified against what the service says. */
import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { healthUrl, signerAt } from '../../cli/identity/health.ts';
import { readNameServer } from '../../cli/identity/lookup.ts';
import { recordName } from '../../cli/identity/record.ts';
import { type DnsServer, startDns } from '../support/dns.ts';
import { type RunningService, startTestService, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { type Ended, folderWith, launchCli, type RunOptions, runCli } from './run.ts';
import { configText } from './service-config.ts';

const OTHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const env = { SERVICE_PRIVATE_KEY: TEST_KEY };

function ended(code: number, stdout: readonly string[], error?: string): Ended {
  const stderr = error === undefined ? '' : `error: ${error}\n`;
  return { code, signal: null, stdout: stdout.map((line) => `${line}\n`).join(''), stderr };
}

const NO_DOMAIN = 'option -d, --domain <domain> must be a domain name such as api.example.com';

describe('identity', { concurrency: 4 }, () => {
  const show = (t: TestContext, domain: string, options: RunOptions = { env }) =>
    runCli(t, ['identity', '-d', domain], options);
  const record = (name: string) => ended(0, [`${name} 300 IN TXT "${TEST_ADDRESS}"`]);

  it('prints the record in the form of a zone file', async (t) => {
    assert.deepEqual(await show(t, 'api.example.com'), record('_node.api.example.com.'));
  });

  it('writes a name as DNS has it', async (t) => {
    assert.deepEqual(await show(t, 'API.Bücher.Example.'), record('_node.api.xn--bcher-kva.example.'));
    assert.deepEqual(await show(t, 'my-api_2.example'), record('_node.my-api_2.example.'));
  });

  it('takes the signer from the file that --env names', async (t) => {
    const cwd = await folderWith(t, { 'a.env': `SERVICE_PRIVATE_KEY=${TEST_KEY}\n` });
    const args = ['identity', '--domain=example.com', '--env', 'a.env'];
    assert.deepEqual(await runCli(t, args, { cwd }), record('_node.example.com.'));
  });

  it('prints one for the signer of a config, and one for the next', async (t) => {
    const text = configText(undefined, 'settings: { signer: { type: environment, next: { type: environment } } }');
    const cwd = await folderWith(t, { 'c.yaml': text });
    const both = {
      ...env,
      SERVICE_NEXT_MNEMONIC: 'legal winner thank year wave sausage worth useful legal winner thank yellow',
    };
    const line = (address: string) => `_node.example.com. 300 IN TXT "${address}"`;
    assert.deepEqual(
      await runCli(t, ['identity', '-d', 'example.com', '-c', 'c.yaml'], { cwd, env: both }),
      ended(0, [line(TEST_ADDRESS), line('0x58A57ed9d8d624cBD12e2C467D34787555bB1b25')]),
    );
    assert.deepEqual(await runCli(t, ['address', '-c', 'c.yaml'], { cwd, env: both }), ended(0, [TEST_ADDRESS]));
    assert.deepEqual(
      await runCli(t, ['address', '-c', 'c.yaml'], { cwd, env }),
      ended(1, [], 'SERVICE_NEXT_PRIVATE_KEY or SERVICE_NEXT_MNEMONIC must be set'),
    );
  });

  it('looks nothing up without --check', async (t) => {
    for (const [name, value] of [
      ['address', OTHER],
      ['url', 'https://api.example.com'],
      ['resolver', '127.0.0.1'],
    ] as const)
      assert.deepEqual(
        await runCli(t, ['identity', '-d', 'example.com', `--${name}`, value], { env }),
        ended(1, [], `option --${name} needs --check`),
      );
  });

  it('needs a signer', async (t) => {
    const message = 'SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC must be set';
    assert.deepEqual(await show(t, 'example.com', {}), ended(1, [], message));
  });

  const label = 'a'.repeat(63);
  const longest = `${label}.${label}.${label}.${'b'.repeat(55)}`;

  it('takes a domain up to the length that DNS allows', async (t) => {
    assert.equal(`_node.${longest}`.length, 253);
    assert.deepEqual(await show(t, longest), record(`_node.${longest}.`));
  });

  const refused: [string, string, string][] = [
    ['one character more', `${longest}b`, 'option -d, --domain <domain> must have at most 247 characters'],
    [
      'a part that is too long',
      `${label}a.example`,
      'option -d, --domain <domain> must have at most 63 characters between dots',
    ],
    [
      'the name of the record',
      '_node.example.com',
      'option -d, --domain <domain> must be the domain of the API, without "_node."',
    ],
    ['a URL', 'https://api.example.com', NO_DOMAIN],
    ['a path', 'api.example.com/v1', NO_DOMAIN],
    ['a port', 'example.com:443', NO_DOMAIN],
    ['an encoded character', '%61.example.com', NO_DOMAIN],
    ['an IP address', '127.0.0.1', NO_DOMAIN],
    ['an IP address in short', '127.1', NO_DOMAIN],
    ['an empty part', 'api..example.com', NO_DOMAIN],
    ['the root', '.', NO_DOMAIN],
    ['a hyphen at an end', 'api-.example.com', NO_DOMAIN],
    ['what would end the line of a zone file', 'example.com\n@', NO_DOMAIN],
    ['malformed punycode', 'xn--a.example', NO_DOMAIN],
  ];
  for (const [what, domain, message] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(() => recordName(domain), { message });
    });
  }
  it('refuses with one line and exit code 1', async (t) => {
    assert.deepEqual(await show(t, 'example.com\n@'), ended(1, [], NO_DOMAIN));
  });
});

describe('identity --check', { concurrency: 4 }, () => {
  let dns: DnsServer;
  before(async () => {
    const filler = Array.from({ length: 20 }, (_, index) => [`0x${String(index).padStart(40, '0')}`]);
    dns = await startDns({
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
    });
  });
  after(() => dns.close());

  const verify = (t: TestContext, domain: string, words: readonly string[], options: RunOptions = {}) =>
    runCli(t, ['identity', '--check', '-d', domain, '--resolver', dns.address, ...words], options);
  const asked = (name: string, expected = `${TEST_ADDRESS} (given)`) => [
    `Expected: ${expected}`,
    `Looked up: TXT ${name} (resolver ${dns.address})`,
  ];
  const matches = (name: string, found: string) => ended(0, [...asked(name), `Found: ${found}`, 'Match: yes']);

  it('an address', async (t) => {
    const expected = matches('_node.one.test', TEST_ADDRESS);
    assert.deepEqual(await verify(t, 'ONE.test.', ['--address', TEST_ADDRESS.toLowerCase()]), expected);
  });

  it('one of several, in one record or in several', async (t) => {
    const [two, records] = await Promise.all([
      verify(t, 'two.test', ['--address', TEST_ADDRESS]),
      verify(t, 'records.test', ['--address', TEST_ADDRESS]),
    ]);
    assert.deepEqual(two, matches('_node.two.test', `${OTHER}, ${TEST_ADDRESS}`));
    assert.deepEqual(records, matches('_node.records.test', `${OTHER}, ${TEST_ADDRESS}`));
  });

  it('a record in several strings', async (t) => {
    const expected = matches('_node.chunks.test', `${TEST_ADDRESS}, ${OTHER}`);
    assert.deepEqual(await verify(t, 'chunks.test', ['--address', TEST_ADDRESS]), expected);
  });

  it('any case and white space; what is no address is counted', async (t) => {
    const odd = await verify(t, 'odd.test', ['--address', TEST_ADDRESS]);
    const found = `${TEST_ADDRESS} (and 2 entries that are no addresses)`;
    assert.deepEqual(odd, matches('_node.odd.test', found));
    const upper = await verify(t, 'upper.test', ['--address', TEST_ADDRESS]);
    assert.deepEqual(upper, matches('_node.upper.test', TEST_ADDRESS));
  });

  it('more than a datagram holds', async (t) => {
    const { code, stdout } = await verify(t, 'large.test', ['--address', TEST_ADDRESS]);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`, 0x0{38}19, ${TEST_ADDRESS}\nMatch: yes\n$`));
    const questions = dns.questions.filter((question) => question.includes('large'));
    assert.deepEqual(questions, ['udp TXT _node.large.test', 'tcp TXT _node.large.test']);
  });

  it('an international domain', async (t) => {
    const expected = matches('_node.xn--bcher-kva.test', TEST_ADDRESS);
    assert.deepEqual(await verify(t, 'bücher.test', ['--address', TEST_ADDRESS]), expected);
  });

  it('another address does not match: exit code 1', async (t) => {
    const expected = ended(1, [...asked('_node.other.test'), `Found: ${OTHER}`, 'Match: no']);
    assert.deepEqual(await verify(t, 'other.test', ['--address', TEST_ADDRESS]), expected);
  });

  it('follows an alias', async (t) => {
    const expected = ended(0, [...asked('_node.alias.test', `${OTHER} (given)`), `Found: ${OTHER}`, 'Match: yes']);
    assert.deepEqual(await verify(t, 'alias.test', ['--address', OTHER]), expected);
  });

  it('the address of the key in the environment, or in the file that --env names', async (t) => {
    const source = `${TEST_ADDRESS} (the key in the environment)`;
    const expected = ended(0, [...asked('_node.one.test', source), `Found: ${TEST_ADDRESS}`, 'Match: yes']);
    assert.deepEqual(await verify(t, 'one.test', [], { env }), expected);
    const cwd = await folderWith(t, { 'a.env': `SERVICE_PRIVATE_KEY=${TEST_KEY}\n` });
    assert.deepEqual(await verify(t, 'one.test', ['--env', 'a.env'], { cwd }), expected);
    const message =
      'no signer to look for: give --address <address> or --url <url>, or set SERVICE_PRIVATE_KEY or SERVICE_MNEMONIC';
    assert.deepEqual(await verify(t, 'one.test', []), ended(1, [], message));
  });

  it('the signer of a config', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    assert.deepEqual(
      await verify(t, 'one.test', ['-c', 'c.yaml'], { cwd, env }),
      ended(0, [
        ...asked('_node.one.test', `${TEST_ADDRESS} (the signer of c.yaml)`),
        `Found: ${TEST_ADDRESS}`,
        'Match: yes',
      ]),
    );
  });

  it('asks the resolver of the system without --resolver', async (t) => {
    const script = `import { setServers } from 'node:dns'; setServers(['${dns.address}'])`;
    const NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(script)}`;
    const args = ['identity', '--check', '-d', 'two.test', '--address', OTHER];
    const lines = [`Expected: ${OTHER} (given)`, 'Looked up: TXT _node.two.test (system resolver)'];
    const expected = ended(0, [...lines, `Found: ${OTHER}, ${TEST_ADDRESS}`, 'Match: yes']);
    assert.deepEqual(await launchCli(t, args, { env: { NODE_OPTIONS } }).ended, expected);
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
    ['a resolver that does not answer', 'silent', 'no answer within 5000 ms'],
    ['an answer that is none', 'garbage', 'the answer is malformed (EBADRESP)'],
  ];
  for (const [what, domain, message] of failures) {
    it(`says so of ${what}`, async (t) => {
      const name = `_node.${domain}.test`;
      const expected = ended(1, asked(name), `${name}: ${message}`);
      assert.deepEqual(await verify(t, `${domain}.test`, ['--address', TEST_ADDRESS]), expected);
    });
  }

  it('says so of a resolver that is not there', async (t) => {
    const gone = await startDns({});
    await gone.close();
    const args = ['identity', '--check', '-d', 'one.test', '--address', OTHER, '--resolver', gone.address];
    const lines = [`Expected: ${OTHER} (given)`, `Looked up: TXT _node.one.test (resolver ${gone.address})`];
    const message = '_node.one.test: the resolver cannot be reached (ECONNREFUSED)';
    assert.deepEqual(await runCli(t, args), ended(1, lines, message));
  });

  const RESOLVER = 'option --resolver <ip:port> must be an IP address, with a port unless it is 53';
  const ADDRESS = 'option --address <address> must be 0x and 40 hex digits, mixed-case only with the right checksum';
  const URL_RULE = 'option --url <url> must be the URL of a service such as https://api.example.com';
  const ONE = 'only one of --address, --url and -c or --env can be given: each names a signer';
  const options: [string, string[], string][] = [
    ['no domain', [], 'missing required option -d, --domain <domain>'],
    ['a mistyped address', ['-d', 'a.test', '--address', OTHER.replace('C8', 'c8')], ADDRESS],
    ['an address and a URL', ['-d', 'a.test', '--address', OTHER, '--url', 'http://127.0.0.1:1'], ONE],
    ['an address and a file', ['-d', 'a.test', '--address', OTHER, '--env', 'a.env'], ONE],
    ['an address and a config', ['-d', 'a.test', '--address', OTHER, '-c', 'c.yaml'], ONE],
    ['a URL without a scheme', ['-d', 'a.test', '--url', 'api.example.com'], URL_RULE],
    ['a resolver by its name', ['-d', 'a.test', '--resolver', 'dns.example.com'], RESOLVER],
  ];
  for (const [what, words, message] of options) {
    it(`refuses ${what}`, async (t) => {
      assert.deepEqual(await runCli(t, ['identity', '--check', ...words], { env }), ended(1, [], message));
    });
  }

  it('takes the URL of a service only', () => {
    const bad = [
      'ftp://a.example',
      'http://a:b@a.example',
      'http://a@a.example',
      'http://a.example?b',
      'http://a.example/#b',
    ];
    for (const url of ['', '/health', ...bad]) assert.throws(() => healthUrl(url), { message: URL_RULE }, url);
    assert.equal(healthUrl('HTTPS://A.example:8443/v1/?'), 'https://a.example:8443/v1/health');
  });

  it('takes the IP address of a resolver, with or without a port', () => {
    const addressOf = (text: string) => readNameServer(text).address;
    assert.deepEqual(['192.0.2.1', '192.0.2.1:5353'].map(addressOf), ['192.0.2.1:53', '192.0.2.1:5353']);
    assert.deepEqual(['::1', '[::1]', '[::1]:5353'].map(addressOf), ['[::1]:53', '[::1]:53', '[::1]:5353']);
    const bad = [
      '',
      ':53',
      '[]:53',
      '[192.0.2.1]:53',
      '192.0.2.1:',
      '192.0.2.1:0',
      '[::1]:65536',
      '1.2.3:53',
      '::1]',
      'a:1',
    ];
    for (const text of bad) assert.throws(() => readNameServer(text), { message: RESOLVER }, text);
  });
});

describe('identity verify --url', { concurrency: 4 }, () => {
  let dns: DnsServer;
  let service: RunningService;
  let server: Upstream;
  before(async () => {
    dns = await startDns({ '_node.api.test': [[TEST_ADDRESS]], '_node.silent.test': 'silence' });
    server = await startUpstream();
    const endpoints = [{ name: 'e', path: '/' }];
    service = await startTestService({ apis: [{ name: 'a', url: server.url, auth: { type: 'free' }, endpoints }] });
    server.json('/other/health', { status: 'ok', node: OTHER.toLowerCase() });
    server.json('/failing/health', { status: 'ok', node: TEST_ADDRESS }, 503);
    server.json('/mistyped/health', { status: 'ok', node: TEST_ADDRESS.replace('F', 'f') });
    server.json('/nameless/health', { status: 'ok' });
    server.json('/null/health', null);
    server.text('/html/health', '<!doctype html>', { type: 'text/html' });
    server.text('/large/health', JSON.stringify({ node: TEST_ADDRESS, more: 'x'.repeat(4096) }));
    server.on('/silent/health', () => undefined);
  });
  after(async () => {
    await Promise.all([dns.close(), service.stop()]);
    await server.close();
  });

  const verify = (t: TestContext, url: string) =>
    runCli(t, ['identity', '--check', '-d', 'api.test', '--url', url, '--resolver', dns.address]);
  const lines = (expected: string, url: string, match: string) => [
    `Expected: ${expected} (${url}/health)`,
    `Looked up: TXT _node.api.test (resolver ${dns.address})`,
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
    it(`refuses a health record that is ${what}`, async () => {
      await assert.rejects(signerAt(`${server.url}/${path}/health`), { message: message(server.url) });
    });
  }
});
