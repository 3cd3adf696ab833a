import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, request } from 'node:http';
import { Session } from 'node:inspector/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { measuredConfig } from './configs.ts';

/** Counts what a reader of the kernel has to follow: its lines of code, and what of the project runs for one encoded request. */

const { values: options } = parseArgs({
  options: {
    /** The built package of another version; it lies in its source. */
    dist: { type: 'string', default: fileURLToPath(new URL('../..', import.meta.url)) },
    /** Functions that are listed. */
    top: { type: 'string', default: '25' },
  },
});
const dist = resolve(options.dist);
const KERNEL = ['kernel', 'http'];
const OWN = [...KERNEL, 'builtins', 'lib', 'plugins-sdk', 'config', 'service', 'cli'];
const WARM_UP = 50;
/** Requests that are counted one by one: what timers do now and then is in few of them. */
const COUNTED = 21;
/** Turns of the event loop after an answer, for what waits until the answer is on its way. */
const LATER = 5;
/** V8 counts it as a function where an object gets its private members. */
const INITIALIZER = /^<(?:instance|static)_members_initializer>$/;

/** Calls by function, `<file>:<offset> <name>`. */
type Calls = ReadonlyMap<string, number>;

const print = (line: string) => process.stdout.write(`${line}\n`);
const sum = (counts: Iterable<number>) => [...counts].reduce((all, count) => all + count, 0);

/** Lines that hold more than blanks and comments. */
function linesOfCode(file: string): number {
  const code = readFileSync(file, 'utf8').replace(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '');
  return code.split('\n').filter((line) => /^\s*(?!\/\/)\S/.test(line)).length;
}

function printLines(): void {
  print('| folder | files | lines of code |\n|---|---|---|');
  for (const folder of KERNEL) {
    const source = join(dist, '..', folder);
    const files = readdirSync(source).filter((name) => name.endsWith('.ts'));
    print(`| ${folder} | ${files.length} | ${sum(files.map((name) => linesOfCode(join(source, name))))} |`);
  }
}

/** The service as the program runs it, but in this process. */
async function start(folder: string, upstream: string) {
  const [log, file] = [join(folder, 'log'), join(folder, 'config.yaml')];
  await writeFile(file, measuredConfig(upstream));
  const load = (name: string) => import(pathToFileURL(join(dist, 'service', name)).href);
  const [{ startService }, { createLog }, { LogSink }] = await Promise.all(
    ['index.js', 'log.js', 'log-sink.js'].map(load),
  );
  const descriptor = openSync(log, 'w');
  const sink = new LogSink(descriptor, () => undefined);
  const env = { SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}` };
  const settings = { level: 'info', format: 'json', colour: false };
  const service = await startService({ file, env, log: createLog(settings, sink) });
  sink.flushSync();
  const id = /bench\/encoded (0x[0-9a-f]{64})/.exec(readFileSync(log, 'utf8'))?.[1];
  const stop = async () => {
    await service.stop();
    sink.flushSync();
    closeSync(descriptor);
  };
  return { url: `${service.url}/endpoints/${id}`, stop };
}

async function ask(url: string, agent: Agent): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' };
  const sent = request(url, { method: 'POST', agent, headers }).end('{"parameters":{"symbol":"ETHUSD"}}');
  const [response] = await once(sent, 'response');
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  await once(response.resume(), 'end');
  for (let turn = 0; turn < LATER; turn++) await setImmediate();
}

/** What ran since the last time. */
async function take(session: Session): Promise<Calls> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const own = pathToFileURL(`${dist}/`).href;
  const calls = new Map<string, number>();
  for (const { url, functions } of result) {
    const file = url.startsWith(own) ? url.slice(own.length) : '';
    if (!OWN.includes(file.split('/')[0] ?? '')) continue;
    for (const { functionName, ranges } of functions) {
      const { count, startOffset } = ranges[0] ?? { count: 0, startOffset: 0 };
      if (count > 0 && !INITIALIZER.test(functionName)) calls.set(`${file}:${startOffset} ${functionName}`, count);
    }
  }
  return calls;
}

/** Of each function the median. */
function typical(requests: readonly Calls[]): Calls {
  const median = (name: string) =>
    requests.map((calls) => calls.get(name) ?? 0).sort((a, b) => a - b)[requests.length >> 1] ?? 0;
  const names = new Set(requests.flatMap((calls) => [...calls.keys()]));
  return new Map([...names].map((name) => [name, median(name)] as const).filter(([, count]) => count > 0));
}

/** A function with the line that it begins in. */
function readable(name: string): string {
  const [, file = '', offset, own] = /^([^:]+):(\d+) (.*)$/.exec(name) ?? [];
  const before = readFileSync(join(dist, file), 'utf8').slice(0, Number(offset));
  return `${file}:${before.split('\n').length} ${own === '' ? '(no name)' : own}`;
}

function printCalls(calls: Calls): void {
  const files = new Map<string, number[]>();
  for (const [name, count] of calls) {
    const file = name.slice(0, name.indexOf(':'));
    files.set(file, [...(files.get(file) ?? []), count]);
  }
  print('\n| file | functions | calls |\n|---|---|---|');
  const rows = [...files].sort(([, a], [, b]) => sum(b) - sum(a));
  for (const [file, counts] of rows) print(`| ${file} | ${counts.length} | ${sum(counts)} |`);
  print(`| ${files.size} files | ${calls.size} | ${sum(calls.values())} |`);
  print('\n| function, as built | calls |\n|---|---|');
  const most = [...calls].sort(([, a], [, b]) => b - a).slice(0, Number(options.top));
  for (const [name, count] of most) print(`| ${readable(name)} | ${count} |`);
}

/** Counts one request after the other, by a service that is warm. */
async function count(url: string): Promise<Calls> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < WARM_UP; i++) await ask(url, agent);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const requests: Calls[] = [];
  for (let i = 0; i < COUNTED; i++) {
    await take(session);
    await ask(url, agent);
    requests.push(await take(session));
  }
  session.disconnect();
  agent.destroy();
  return typical(requests);
}

printLines();
const folder = await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-'));
const upstream = createServer((_, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"symbol":"ETHUSD","price":2064.01}');
});
await once(upstream.listen(0, '127.0.0.1'), 'listening');
const service = await start(folder, `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`);
printCalls(await count(service.url));
await service.stop();
upstream.close();
await rm(folder, { recursive: true });
