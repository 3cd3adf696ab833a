/** Several workers serve one port as one service, and are replaced when they end. */

import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Scrape } from '../support/metrics.ts';
import { eventOf, eventually, isAlive } from '../support/wait.ts';
import { folderWith, launchCli, type Running, type RunOptions } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';
import { heldUpstream, postTo, TIME } from './started.ts';

const ONE = 'https://one.example.com';
const TWO = 'https://two.example.com';

/** A plugin that tells the process it is in, and more, each time that it is set up. */
const plugin = (body = '') => `
  import { existsSync, mkdirSync } from 'node:fs';
  const here = (name) => new URL(name, import.meta.url);
  const isFirst = (name) => { try { mkdirSync(here(name)); return true; } catch { return false; } };
  console.log('pid ' + process.pid);
  export default async () => { ${body}; return { name: 'p', hooks: { onResponseSent() {} } }; };`;

const SETTINGS = 'settings: { plugins: [{ source: ./p.mjs }], metrics: { port: 0 } }';

interface Started {
  readonly cwd: string;
  readonly running: Running;
  /** The processes of the workers so far. */
  pids(): number[];
  write(name: string, text: string): Promise<void>;
}

async function startWorkers(
  t: TestContext,
  { body = '', url = ONE, env = {}, ...options }: { body?: string; url?: string } & RunOptions = {},
): Promise<Started> {
  const cwd = await folderWith(t, {
    // Workers take long to start on a busy machine, and a request may wait for them.
    'c.yaml': configText(url, SETTINGS).replace('endpoints:', 'timeout: 60000\n    endpoints:'),
    'p.mjs': plugin(body),
  });
  const args = ['start', '-c', 'c.yaml', '--workers', '2'];
  const running = launchCli(t, args, { ...options, cwd, env: { SERVICE_PRIVATE_KEY: KEY, ...env } });
  const pids = () => [...running.written().matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid));
  return { cwd, running, pids, write: (name, content) => writeFile(join(cwd, name), content) };
}

const urlOf = async ({ output }: Running) => (await output(/listening on (http:\/\/[^\s"]+)/))[1] ?? '';
const ready = ({ output }: Running) => output(/2 workers are ready/);

/** A GET on a connection of its own: its status, or the code of its error. */
function get(url: string): Promise<number | string> {
  return new Promise((resolve) => {
    const request = httpRequest(url, { agent: new Agent() }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end();
  });
}

/** Asks again and again, on new connections, with pauses: what happens meanwhile needs the processors. @returns what ends that, and then what was no 200. */
function ask(url: string): () => Promise<unknown[]> {
  const failures: unknown[] = [];
  let isOver = false;
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const answer = await get(url);
      if (answer !== 200) failures.push(answer);
      await sleep(20);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(clients);
    return failures;
  };
}

/** Asks until each of two workers has answered. @returns how often it has asked. */
async function askBoth({ child }: Running, url: string): Promise<number> {
  const seen = new Set<string>();
  child.stdout?.on('data', (text: string) => {
    const lines = text
      .split('\n')
      .filter((line) => /GET \/health 200|"route":"\/health","method":"GET","status":200/.test(line));
    for (const line of lines) seen.add(/worker"?[=:](\d)/.exec(line)?.[1] ?? 'none');
  });
  let asked = 0;
  const askMore = async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(`${url}/health`)));
    assert.deepEqual(new Set(answers), new Set([200]));
    asked += answers.length;
    return seen.size >= 2 && asked;
  };
  return eventually(askMore, () => `answers of two workers: ${[...seen]}`);
}

/** What 20 requests for the endpoint of a config are answered: 404 is that of another config. */
async function statuses(url: string, upstream: string): Promise<Set<number>> {
  const path = `/endpoints/${endpointId(specifications(upstream).eth)}`;
  const post = () => fetch(url + path, { method: 'POST', headers: { Connection: 'close' } });
  return new Set(await Promise.all(Array.from({ length: 20 }, async () => (await post()).status)));
}

/** The lines of the log, JSON, without what plugins print. */
function logged(stdout: string) {
  const lines = stdout.trimEnd().split('\n');
  return lines.filter((line) => !line.startsWith('pid ')).map((line) => JSON.parse(line));
}

describe('start --workers', { concurrency: 3 }, () => {
  it('serves with several processes: one log, one port, one sum of metrics, one start', async (t) => {
    const garbage = `for (const message of [1, 'x', {}, { kind: 'ready' }, { kind: '__proto__' }, { kind: 'prepared', id: 'x' },
      { kind: 'answer', id: 7 }, { kind: 'failed', lines: 'x' }]) process.send(message)`;
    const { running, pids } = await startWorkers(t, { body: garbage, env: { LOG_FORMAT: 'json' } });
    const { output, child, ended } = running;
    await ready(running);
    const url = await urlOf(running);
    const [, metrics = ''] = await output(/metrics on (http:\/\/[^\s"]+)/);
    for (const page of [`${url}/ready`, metrics.replace('/metrics', '/ready')]) assert.equal(await get(page), 200);
    const asked = await askBoth(running, url);
    const scrape = await eventually(async () => {
      const found = new Scrape(await (await fetch(metrics)).text());
      return Number(found.table('requests_total')['/health    200']) >= asked && found;
    });
    assert.equal(scrape.table('requests_total')['/health    200'], asked);
    assert.equal(scrape.value('workers'), 2);
    assert.equal(scrape.value('worker_restarts'), 0);
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(new Set(pids()).size, 2);
    const lines = logged(stdout);
    const once = (text: string) => lines.filter(({ msg }) => msg.startsWith(text));
    const workersThatSay = (text: string) => once(text).map(({ worker }) => worker);
    for (const text of ['listening on', 'signer 0x', 'prices/eth', 'server.workers: '])
      assert.deepEqual(workersThatSay(text), [1], text);
    for (const text of ['2 workers are ready', 'stopping', 'stopped'])
      assert.deepEqual(workersThatSay(text), [undefined], text);
    const requests = once('request');
    assert.equal(requests.filter(({ route }) => route === '/health').length, asked);
    assert.ok(requests.every(({ worker }) => worker === 1 || worker === 2));
    assert.deepEqual(lines.at(-1).msg, 'stopped');
  });

  it('replaces a worker that is killed, while the other goes on', async (t) => {
    const body = `process.on('SIGUSR2', () => process.kill(process.pid, 'SIGKILL'))`;
    const { running, pids, write } = await startWorkers(t, { body });
    await ready(running);
    const url = await urlOf(running);
    const stop = ask(`${url}/health`);
    const [, victim = 0] = pids();
    process.kill(victim, 'SIGUSR2');
    await running.output(/ERROR a worker was ended by SIGKILL: it is replaced in 0 ms worker=\d pid=\d+\n/);
    await running.output(/INFO a worker is ready worker=\d pid=\d+\n/);
    const failures = await stop();
    // Only what the one that was killed had accepted.
    assert.ok(failures.length <= 8 && failures.every((code) => code === 'ECONNRESET'), failures.join());
    assert.equal(pids().length, 3);

    // One that cannot start is tried again and again.
    await write('c.yaml', 'version: 1.0');
    process.kill(pids()[2] ?? 0, 'SIGKILL');
    await running.output(
      /ERROR apis: required key is missing worker=\d\n[\s\S]*cannot start: it is replaced in 2000 ms[\s\S]*cannot start/,
    );
    await write('c.yaml', configText(ONE, SETTINGS));
    await running.output(/cannot start[\s\S]*a worker is ready/);
    assert.equal(await get(`${url}/ready`), 200);
    const metrics = (await running.output(/metrics on (\S+)/))[1] ?? '';
    assert.ok(Number(new Scrape(await (await fetch(metrics)).text()).value('worker_restarts')) >= 3);
    assert.equal((await running.stop()).code, 0);
  });

  it('says once that all are ready, also if one of them cannot start at first', async (t) => {
    const { running, pids } = await startWorkers(t, {
      body: `if (!isFirst('one') && isFirst('two')) throw new Error('not yet')`,
    });
    await running.output(/ERROR a worker cannot start: it is replaced in 2000 ms worker=2[\s\S]*2 workers are ready\n/);
    process.kill(pids()[0] ?? 0, 'SIGKILL');
    await running.output(/INFO a worker is ready worker=1 pid=\d+\n/);
    const { code, stdout } = await running.stop();
    assert.deepEqual([code, stdout.match(/are ready|is ready/g)], [0, ['are ready', 'is ready']]);
  });

  it('has all processes take another LOG_LEVEL with a reload', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText(ONE), '.env': 'LOG_LEVEL=info\n' });
    const args = ['start', '-c', 'c.yaml', '--workers', '2'];
    const running = launchCli(t, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
    await ready(running);
    const url = await urlOf(running);
    const reloadAt = async (level: string) => {
      await writeFile(join(cwd, '.env'), `LOG_LEVEL=${level}\n`);
      running.child.kill('SIGHUP');
    };
    await reloadAt('debug');
    await running.output(/INFO the new config is in force/);
    for (const worker of [1, 2]) {
      const seen = running.output(new RegExp(`DEBUG timeline worker=${worker} `));
      let isSeen = false;
      void seen.then(() => (isSeen = true));
      await eventually(() => isSeen || get(`${url}/health`).then(() => false));
    }
    await reloadAt('nonsense');
    await running.output(/ERROR LOG_LEVEL must be one of /);
    assert.equal((await running.stop()).code, 0);
  });

  it('reloads all, unless the first one cannot', async (t) => {
    const body = `if (existsSync(here('bad'))) throw new Error('not here');
      if (existsSync(here('worse')) && isFirst('worse/taken')) process.kill(process.pid, 'SIGKILL')`;
    const { running, cwd, write } = await startWorkers(t, { body });
    await ready(running);
    const metrics = (await running.output(/metrics on (\S+)/))[1] ?? '';
    await mkdir(join(cwd, 'bad'));
    await write('c.yaml', configText(TWO, SETTINGS));
    running.child.kill('SIGHUP');
    await running.output(
      /ERROR settings\.plugins\[0\]\.source: [^\n]*not here[^\n]* worker=1\n\S+ ERROR the config was not reloaded: the one before stays in force worker=1\n/,
    );
    const url = await urlOf(running);
    assert.deepEqual(await statuses(url, TWO), new Set([404]));

    await rm(join(cwd, 'bad'), { recursive: true });
    await mkdir(join(cwd, 'worse'));
    running.child.kill('SIGHUP');
    // The first one ends while it tries: the other is not asked, and what takes its place reads the files as they are.
    await running.output(
      /a worker was ended by SIGKILL: it is replaced in 0 ms worker=1[\s\S]*a worker is ready worker=1/,
    );
    await running.output(
      /ERROR a worker gave no answer to the reload, and the others keep the config before: reload again worker=1 pid=\d+\n/,
    );
    running.child.kill('SIGHUP');
    await running.output(/the new config is in force workers=2\n/);
    assert.deepEqual(await statuses(url, ONE), new Set([404]));
    assert.equal(await get(metrics), 200);
    const { code, stdout } = await running.stop();
    assert.deepEqual([code, stdout.match(/config reloaded/g)?.length], [0, 1]);
  });

  it('leaves no worker with the config before: one that starts, one that cannot reload, one that drains', async (t) => {
    const body = `if (existsSync(here('late'))) await new Promise((resolve) => setTimeout(resolve, 2000));
      if (existsSync(here('bad' + process.pid))) throw new Error('not here')`;
    const { running, cwd, write, pids } = await startWorkers(t, { body });
    await ready(running);
    const url = await urlOf(running);
    const reloadTo = async (upstream: string) => {
      await write('c.yaml', configText(upstream, SETTINGS).replace('port: 0 }', 'port: 0, drainDelay: 3000 }'));
      running.child.kill('SIGHUP');
    };
    await mkdir(join(cwd, 'late'));
    process.kill(pids()[1] ?? 0, 'SIGKILL');
    await eventually(() => pids().length === 3);
    await reloadTo(TWO);
    await running.output(/the new config is in force workers=2\n/);
    assert.deepEqual(await statuses(url, ONE), new Set([404]));

    await rm(join(cwd, 'late'), { recursive: true });
    await mkdir(join(cwd, `bad${pids()[2]}`));
    await reloadTo(ONE);
    await running.output(
      /not here[\s\S]*a worker ended with exit code 0: it is replaced[\s\S]*a worker is ready worker=2/,
    );
    assert.deepEqual(await statuses(url, TWO), new Set([404]));

    process.kill(pids()[0] ?? 0, 'SIGTERM');
    await sleep(500);
    await reloadTo(TWO);
    // The first one drains, and tries nothing: what takes its place reads the new files.
    await running.output(/gave no answer to the reload[^\n]* worker=1[\s\S]*a worker is ready worker=1/);
    running.child.kill('SIGHUP');
    await running.output(/the new config is in force workers=2\n[\s\S]*the new config is in force workers=2\n/);
    assert.deepEqual(await statuses(url, ONE), new Set([404]));
    assert.equal((await running.stop()).code, 0);
  });

  /** An upstream that answers when told, behind a service that is in the middle of a request. */
  async function midRequest(t: TestContext, options: RunOptions = {}) {
    const { url: base, arrival } = await heldUpstream(t);
    const started = await startWorkers(t, { ...options, url: base });
    await ready(started.running);
    const url = await urlOf(started.running);
    const response = postTo(url, endpointId(specifications(base).eth));
    const inFlight = await arrival;
    const answer = async () => {
      inFlight.setHeader('Content-Type', 'application/json').end('{"price": 2}');
      return (await response).status;
    };
    return { ...started, url, answer };
  }

  it('lets requests in flight finish when all get a signal, as by Ctrl-C', async (t) => {
    const { running, url, answer, pids } = await midRequest(t, { ownGroup: true });
    process.kill(-(running.child.pid ?? 0), 'SIGINT');
    await running.output(/stopping signal=SIGINT\n/);
    running.child.kill('SIGINT');
    await eventually(async () => (await get(`${url}/health`)) === 'ECONNREFUSED');
    assert.equal(await answer(), 200);
    const { code, stdout, stderr } = await running.ended;
    assert.deepEqual([code, stderr, pids().length], [0, '', 2]);
    assert.equal(stdout.match(/stopping|stopped/g)?.length, 2);
    assert.match(stdout, new RegExp(`\n${TIME} INFO stopped\n$`));
  });

  it('replaces one that gets a signal by itself, once it has drained', async (t) => {
    const { running, url, answer, pids } = await midRequest(t);
    const stop = ask(`${url}/health`);
    const [leaves = 0] = pids();
    process.kill(leaves, 'SIGTERM');
    assert.equal(await answer(), 200);
    await running.output(/a worker ended with exit code 0: it is replaced in 0 ms[\s\S]*a worker is ready/);
    assert.deepEqual(await stop(), [], 'the other one serves');
    assert.equal(isAlive(leaves), false);
    const { code, stdout, stderr } = await running.stop();
    assert.deepEqual([code, stderr, pids().length], [0, '', 3]);
    assert.equal(stdout.match(/WARN server\.workers: /g)?.length, 2, 'what takes its place says its own warnings');
    assert.doesNotMatch(stdout, / (WARN|ERROR) (?!server\.workers|apis|a worker ended with exit code 0)/);
  });

  it('ends all workers when the primary process is killed, after what is under way', async (t) => {
    const { running, answer, pids } = await midRequest(t);
    running.child.kill('SIGKILL');
    await eventOf(running.child, 'exit');
    assert.equal(await answer(), 200);
    await eventually(() => pids().every((pid) => !isAlive(pid)));
  });
});
