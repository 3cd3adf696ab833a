/** Upstreams are found by name, and a dead address costs no answer. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { folderWith, launchCli } from '../cli/run.ts';
import { type DnsServer, startDns } from '../support/dns.ts';
import { assertRefused, eventually, JSON_HEADERS } from '../support/http.ts';
import { TEST_KEY as KEY, type RunningService, startTestService } from '../support/service.ts';
import { faults, startUpstream, type Upstream } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

const NAMES = {
  'healthy.test': { A: ['127.0.0.1'], ttl: 3600 },
  'brief.test': { A: ['127.0.0.1'], ttl: 0 },
  'no-ipv6.test': { A: ['127.0.0.1'], AAAA: 'silence' },
  // Nothing listens at the first address of either family.
  'several.test': { A: ['127.0.0.2', '127.0.0.1'], AAAA: ['::2'] },
  'dead.test': 'silence',
} as const;

/** Hosts by the names of their APIs. */
const HOSTS = {
  healthy: 'healthy.test',
  brief: 'brief.test',
  noIpv6: 'no-ipv6.test',
  several: 'several.test',
  local: 'localhost',
  below: 'some.localhost',
  dead: 'dead.test',
  unknown: 'unknown.test',
};

describe('upstreams that have names', () => {
  let names: DnsServer;
  let upstream: Upstream;
  let service: RunningService;
  const servers = dns.getServers();

  before(async () => {
    names = await startDns(NAMES);
    dns.setServers([names.address]);
    // Every call needs a connection of its own, and with it the address of its host.
    upstream = await startUpstream({
      '*': (req, res, recorded) => faults.json({ value: 1 })(req, res.setHeader('Connection', 'close'), recorded),
    });
    service = await startTestService({
      apis: Object.entries(HOSTS).map(([name, host]) => ({
        name,
        url: upstream.url.replace('127.0.0.1', host),
        auth: { type: 'free' },
        timeout: name === 'dead' ? 500 : 20_000,
        endpoints: [{ name: 'e', path: '/e' }],
      })),
    });
  });
  after(async () => {
    await service.stop();
    dns.setServers(servers);
    await upstream.close();
    await names.close();
  });
  beforeEach(() => {
    names.questions.length = 0;
  });

  const asked = (name: string) => names.questions.filter((question) => question.endsWith(name));
  const answers = async (api: string) => verifyRaw(await service.post(`${api}/e`), service.signer.address);

  it('a dead name costs nobody else: it is asked for once, whoever waits', async () => {
    const dead = Array.from({ length: 20 }, () => service.post('dead/e'));
    await eventually(() => asked('dead.test')[0], 'a question');
    for (let turn = 0; turn < 5; turn++) await answers('healthy');
    for (const response of dead) await assertRefused(await response, 502, 'API call failed');
    const reasons = service.logs.flatMap(({ fields }) => (fields.detail === undefined ? [] : [String(fields.detail)]));
    assert.match(
      reasons.at(-1) ?? '',
      /^timeout: GET http:.*dead\.test.* failed: no address for the host name within \d+ ms$/,
    );
    // One look-up asks up to four times for each family.
    assert.ok(asked('dead.test').length <= 8, asked('dead.test').join());
    await answers('healthy');
  });

  it('are looked up once while their addresses are good', async () => {
    for (let turn = 0; turn < 5; turn++) await answers('healthy');
    assert.deepEqual(asked('healthy.test'), []);
    await answers('brief');
    for (let turn = 0; asked('brief.test').length === 2 && turn < 5000; turn++) await answers('brief');
    assert.equal(asked('brief.test').length, 4);
  });

  it('may have several addresses, some of them dead, and servers that know no IPv6', async () => {
    for (const api of ['several', 'noIpv6']) await answers(api);
  });

  it('may be of this machine', async () => {
    for (const api of ['local', 'below']) await answers(api);
    assert.deepEqual(asked('localhost'), []);
  });

  it('that do not exist are a 502, and reached as soon as they do', async () => {
    await assertRefused(await service.post('unknown/e'), 502, 'API call failed');
    const { fields } = service.logs.findLast(({ level }) => level === 'warn') ?? {};
    assert.equal(
      fields?.detail,
      `network: GET ${upstream.url.replace('127.0.0.1', 'unknown.test')} failed: the host name is unknown (ENOTFOUND)`,
    );
    names.set('unknown.test', { A: ['127.0.0.1'] });
    let status = 502;
    for (let turn = 0; status === 502 && turn < 5000; turn++) status = (await service.post('unknown/e')).status;
    assert.equal(status, 200);
  });
});

it('SIGTERM does not wait for a look-up', async (t: TestContext) => {
  const names = await startDns({ 'dead.test': 'silence' });
  t.after(() => names.close());
  const config = `version: '1.0'
server: { port: 0 }
apis:
  - name: a
    url: http://dead.test
    timeout: 60000
    auth: { type: free }
    endpoints: [{ name: e, path: /e }]
`;
  const cwd = await folderWith(t, {
    'c.yaml': config,
    'servers.mjs': `import dns from 'node:dns'; dns.setServers(['${names.address}']);`,
  });
  const env = { SERVICE_PRIVATE_KEY: KEY, NODE_OPTIONS: `--import ${cwd}/servers.mjs` };
  const running = launchCli(t, ['start', '-c', 'c.yaml'], { cwd, env });
  const [, url] = await running.output(/listening on (http:\S+)/);
  const [, id] = await running.output(/a\/e (0x\w{64})/);
  const client = new AbortController();
  const options = { method: 'POST', headers: JSON_HEADERS, body: '{}', signal: client.signal };
  const left = fetch(`${url}/endpoints/${id}`, options).catch(() => 'left');
  const asked = () => names.questions.filter((question) => question === 'udp A dead.test').length;
  await eventually(() => asked() > 0 || undefined, 'a look-up');
  client.abort();
  assert.equal(await left, 'left');
  running.child.kill('SIGTERM');
  const { code, stderr } = await running.ended;
  assert.deepEqual([code, stderr], [0, '']);
  // A look-up that has run to its end has asked four times.
  assert.ok(asked() < 4, String(asked()));
});
