/** A limit holds over several processes. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, before, describe, it, type TestContext } from 'node:test';
import { folderWith, launchCli } from '../cli/run.ts';
import { configText, endpointId, KEY, specifications } from '../cli/service-config.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const LIMIT = 60;
const PROCESSES = 4;
const ADA = 'a'.repeat(32);
const env = { SERVICE_PRIVATE_KEY: KEY };

/** Sends a request as a client of that address, over a connection of its own or the agent's; resolves with the status. */
function post(url: string, client: string, upstream: string, agent: Agent | false = false, key = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'X-Forwarded-For': client, 'X-Api-Key': key };
    const path = `${url}/endpoints/${endpointId(specifications(upstream).eth)}`;
    request(path, { method: 'POST', headers, agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end('{}');
  });
}

const allowed = (statuses: readonly number[]) => {
  assert.deepEqual([...new Set(statuses)].filter((status) => status !== 200 && status !== 429).length, 0);
  return statuses.filter((status) => status === 200).length;
};

/** As many requests as all processes have limits, at once. */
async function burst(urls: readonly string[], client: string, upstream: string): Promise<number> {
  const requests = Array.from({ length: LIMIT * PROCESSES }, (_, index) =>
    post(urls[index % urls.length] ?? '', client, upstream),
  );
  return allowed(await Promise.all(requests));
}

function isBounded(count: number): void {
  assert.ok(count >= LIMIT && count <= LIMIT * 1.25, `${count} of ${LIMIT * PROCESSES} requests were let in`);
}

describe('a limit over several processes', () => {
  let upstream: Upstream;
  before(async () => {
    upstream = await startUpstream();
    upstream.json('/eth', { price: 7 });
  });
  after(() => upstream.close());

  const config = (settings = '') =>
    configText(upstream.url, settings).replace(
      'port: 0',
      `port: 0, rateLimit: { max: ${LIMIT}, window: 3600000, trustForwardedFor: true }`,
    );
  const start = async (t: TestContext, settings: string, args: readonly string[] = []) => {
    const cwd = await folderWith(t, { 'c.yaml': config(settings) });
    const { output } = launchCli(t, ['start', '-c', 'c.yaml', ...args], { cwd, env });
    if (args.length > 0) await output(/workers are ready/);
    return (await output(/listening on (http:\/\/[^\s"]+)/))[1] ?? '';
  };

  describeServers('with an engine', (program) => {
    it('lets in a quarter more at most from the first second, and all of it where only one is asked', async (t) => {
      const redis = await redisFor(t, program);
      const settings = `settings: { state: { type: redis, url: '${redis.url}' } }`;
      const urls = await Promise.all(Array.from({ length: PROCESSES }, () => start(t, settings)));
      isBounded(await burst(urls, '192.0.2.1', upstream.url));
      assert.equal(await burst(urls.slice(1, 2), '192.0.2.2', upstream.url), LIMIT);
    });
  });

  it('is divided among workers that have no engine', async (t) => {
    const url = await start(t, '', ['--workers', `${PROCESSES}`]);
    const count = await burst([url], '192.0.2.1', upstream.url);
    assert.ok(count >= LIMIT / PROCESSES && count <= LIMIT, `${count} requests were let in`);
    assert.deepEqual(await overOneConnection(t, url, 17), [...Array(LIMIT / PROCESSES).fill(200), 429, 429]);
  });

  it("of a key is divided, too, and each worker's part is rounded up", async (t) => {
    const auth = `auth: { type: apiKey, keys: [{ name: ada, key: ${ADA}, rateLimit: { max: 3, window: 3600000 } }] }`;
    const text = config();
    const cwd = await folderWith(t, { 'c.yaml': text.replace('auth: { type: free }', auth) });
    const { output } = launchCli(t, ['start', '-c', 'c.yaml', '--workers', '2'], { cwd, env });
    await output(/workers are ready/);
    const url = (await output(/listening on (http:\/\/[^\s"]+)/))[1] ?? '';
    assert.deepEqual(await overOneConnection(t, url, 4, ADA), [200, 200, 429, 429]);
  });

  /** Statuses of requests that one worker gets, one after the other. */
  async function overOneConnection(t: TestContext, url: string, requests: number, key = ''): Promise<number[]> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const statuses: number[] = [];
    for (let i = 0; i < requests; i++) statuses.push(await post(url, '192.0.2.2', upstream.url, agent, key));
    return statuses;
  }
});
