/** Replicas that are restarted one by one behind nginx lose no request and no payment. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { stringify } from 'yaml';
import { folderWith, launchCli, type Running } from '../cli/run.ts';
import { ADDRESS, KEY } from '../cli/service-config.ts';
import { describeServers, freePort, RedisServer } from '../state/redis-server.ts';
import { type Chain, chainFor } from '../support/chain.ts';
import { stopAll } from '../support/lifetime.ts';
import { startProxy, withoutNginx } from '../support/nginx.ts';
import { randomFrom, seed } from '../support/seed.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const RESTARTS = 4;
/** The time for which nginx leaves one alone that took no connection. */
const FAIL_TIMEOUT = 2000;

/** A service on a port of its own, as it is now and again after each restart. */
class Replica {
  readonly url: string;
  readonly #launch: () => Running;
  #running: Running;

  /** @param words of the command line, after those that name the config. */
  constructor(t: TestContext, cwd: string, { port, words }: Plan) {
    this.url = `http://127.0.0.1:${port}`;
    this.#launch = () =>
      launchCli(t, ['start', '-c', `${port}.yaml`, ...words], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
    this.#running = this.#launch();
  }

  /** By its log. */
  async idOf(endpoint: string): Promise<string> {
    return (await this.#running.output(new RegExp(`${endpoint} (0x[0-9a-f]{64})`)))[1] ?? '';
  }

  /** Resolves when all its processes serve. */
  async ready(): Promise<void> {
    await eventually(async () => (await fetch(`${this.url}/ready`).catch(() => undefined))?.status === 200, this.url);
  }

  async restart(): Promise<void> {
    this.#running.child.kill('SIGTERM');
    const { code, stdout, stderr } = await this.#running.ended;
    assert.deepEqual(
      [code, stderr, stdout.match(/^.* (?:WARN|ERROR) (?!server|apis|Payment verification unavailable).*$/gm)],
      [0, '', null],
    );
    this.#running = this.#launch();
    await this.ready();
  }
}

interface Plan {
  readonly port: number;
  readonly words: readonly string[];
  /** `server.drainDelay` */
  readonly drainDelay: number;
}

/** One POST; its status and text, or the code of the error. */
function post(url: string, headers: Readonly<Record<string, string>>, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const all = { 'Content-Type': 'application/json', ...headers };
    const request = httpRequest(url, { method: 'POST', headers: all, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('close', () => resolve(`${response.statusCode} ${response.complete ? text : 'cut off'}`));
    });
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end('{}');
  });
}

type Kind = 'free' | 'paid';

const SIGNED = /^200 \{.*"signature":"0x[0-9a-f]{130}"\}$/;

/** Clients that ask until it is over, each on a connection of its own, and what they got. */
class Crowd {
  isOver = false;
  readonly failures: string[] = [];
  /** What those got who were not answered and redeemed their payment again. */
  readonly lost: string[] = [];
  readonly answered = { free: 0, paid: 0 };
  readonly #url: (kind: Kind) => string;

  constructor(url: (kind: Kind) => string) {
    this.#url = url;
  }

  async repeat(clients: number, act: (agent: Agent, client: number) => Promise<void>): Promise<void> {
    const client = async (_: unknown, index: number) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (!this.isOver) await act(agent, index);
      agent.destroy();
    };
    await Promise.all(Array.from({ length: clients }, client));
  }

  async ask(kind: Kind, agent: Agent, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const asked = performance.now();
    const outcome = await post(this.#url(kind), headers, agent);
    if (SIGNED.test(outcome)) {
      this.answered[kind] += 1;
      return;
    }
    // Where Redis or the chain was too slow, on a busy machine, no stop is the reason.
    if (!outcome.includes('Payment verification unavailable'))
      this.failures.push(`${kind} after ${Math.round(performance.now() - asked)} ms: ${outcome}`);
    if (kind === 'free') return;
    // A payment that was not answered is not lost.
    const again = await post(this.#url(kind), headers, agent);
    if (!SIGNED.test(again)) this.lost.push(again);
  }
}

describeServers('rolling restarts behind nginx', (program) => {
  const random = randomFrom(seed);

  /** Two replicas that sell at one price, the second of them with workers. */
  async function open(t: TestContext, chain: Chain) {
    const [upstream, redis] = await Promise.all([startUpstream(), RedisServer.start(program)]);
    t.after(() => stopAll(upstream, redis));
    // Some take longer than a service waits before it closes its port.
    upstream.on('*', async (_req, res) => {
      await setTimeout(random() < 0.05 ? 1000 : random() * 50);
      res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"price":7}');
    });
    const api = (name: string, auth: object) => ({
      ...{ name, url: upstream.url, auth },
      endpoints: [{ name: 'p', path: '/p', encoding: { type: 'uint256', path: '$.price' } }],
    });
    const configOf = ({ port, drainDelay }: Plan) =>
      stringify({
        version: '1.0',
        server: { port, drainDelay, rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } },
        settings: { state: { type: 'redis', url: redis.url } },
        apis: [api('free', { type: 'free' }), { ...api('paid', termsOn(chain, PRICE)), url: `${upstream.url}/paid` }],
      });
    const plans: Plan[] = [];
    for (const words of [[], ['--workers', '2']])
      plans.push({ port: await freePort(), words, drainDelay: 250 + Math.floor(random() * 500) });
    const cwd = await folderWith(t, Object.fromEntries(plans.map((plan) => [`${plan.port}.yaml`, configOf(plan)])));
    const replicas = plans.map((plan) => new Replica(t, cwd, plan));
    const ids = {
      'free/p': (await replicas[0]?.idOf('free/p')) ?? '',
      'paid/p': (await replicas[0]?.idOf('paid/p')) ?? '',
    };
    await Promise.all(replicas.map((replica) => replica.ready()));
    return {
      replicas,
      ids,
      ...(await startProxy(
        t,
        replicas.map((replica) => replica.url),
      )),
    };
  }

  it('lose no request and no payment', { skip: withoutNginx, timeout: 280_000 }, async (t) => {
    const chain = await chainFor(t);
    const { replicas, ids, url, errorLog } = await open(t, chain);
    // Blocks have whole seconds: one of this second may be older than the ledger of payments.
    await setTimeout(1000 - (Date.now() % 1000));
    const crowd = new Crowd((kind) => `${url}/endpoints/${ids[`${kind}/p`]}`);
    const free = crowd.repeat(12, async (agent) => {
      await crowd.ask('free', agent);
      await setTimeout(random() * 20);
    });
    const accounts = Array.from({ length: 4 }, (_, index) => payer(chain, 2 + index));
    const paying = crowd.repeat(accounts.length, async (agent, client) => {
      const account = accounts[client] ?? payer(chain, 2);
      const headers = await proofHeader(account, { ids, node: ADDRESS }, 'paid/p', await payNative(account, PRICE));
      await crowd.ask('paid', agent, headers);
    });
    for (let restart = 0; restart < RESTARTS; restart++) {
      await setTimeout(random() * 300);
      await replicas[restart % replicas.length]?.restart();
      await setTimeout(FAIL_TIMEOUT + 100);
    }
    crowd.isOver = true;
    await Promise.all([free, paying]);
    const { answered, failures, lost } = crowd;
    t.diagnostic(JSON.stringify(answered));
    assert.deepEqual(lost, []);
    assert.deepEqual(failures, [], await readFile(errorLog, 'utf8'));
    assert.ok(answered.paid > RESTARTS && answered.free > RESTARTS);
  });
});
