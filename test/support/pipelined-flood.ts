import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Bytes that each connection sends. */
const BYTES = 64 * 1024;
/** Milliseconds for which others are asked meanwhile. */
const DURATION_MS = 5000;
/** Milliseconds until an answer is given up. */
const ANSWER_TIMEOUT_MS = 30_000;

export interface FloodOptions {
  readonly connections: number;
  /** Addresses that they come from, 127.0.0.1 and those behind it. */
  readonly addresses: number;
  /** Numbers in [0, 1): which address each comes from, and at which byte of a request it ends. */
  readonly random: () => number;
  /** Called when all are connected, before they send. */
  begin?(): void;
}

/** What became of a service and of another client. */
export interface Flood {
  /** Milliseconds that another client waited for the slowest answer to `/health`. */
  readonly slowest: number;
  /** Its answers other than 200. */
  readonly failures: number;
  /** MiB of resident memory, at most, beyond what the process had. */
  readonly growth: number;
}

/** MiB of a process: what it has resident, and the most that it ever had. */
function memoryOf(pid: number): { readonly now: number; readonly most: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { now: read('VmRSS'), most: read('VmHWM') };
}

/** @returns milliseconds, and whether the answer was 200. */
function askHealth(url: string): Promise<readonly [number, boolean]> {
  const begin = performance.now();
  return new Promise((resolve) => {
    const done = (isWell: boolean) => resolve([performance.now() - begin, isWell]);
    const options = { agent: false, localAddress: '127.0.0.100', signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) };
    get(`${url}/health`, options, (response) => {
      response.resume().on('end', () => done(response.statusCode === 200));
    }).on('error', () => done(false));
  });
}

/** 26 bytes each, the least that a request can have; the last one is cut off. */
function requests(random: () => number): Buffer {
  const bytes = BYTES - Math.floor(random() * 26);
  return Buffer.alloc(bytes, 'GET / HTTP/1.1\r\nHost:a\r\n\r\n');
}

/**
 * Has a service read a flood: connections each with thousands of requests in one write, whose client reads nothing. The process
 * sleeps until all are sent, so that it finds all of them in one turn of its event loop.
 */
export async function floodPipelined(url: string, pid: number, options: FloodOptions): Promise<Flood> {
  const { connections, addresses, random, begin } = options;
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = [];
  try {
    for (let i = 0; i < connections; i++) {
      const localAddress = `127.0.0.${Math.floor(random() * addresses) + 1}`;
      const socket = connect({ host: hostname, port: Number(port), localAddress });
      sockets.push(socket.pause().on('error', () => undefined));
      // The system has room for some hundred that are not accepted.
      if (i % 128 === 127) await once(socket, 'connect');
    }
    await askHealth(url);
    const before = memoryOf(pid).now;
    begin?.();
    process.kill(pid, 'SIGSTOP');
    for (const socket of sockets) socket.write(requests(random));
    await sleep(500);
    process.kill(pid, 'SIGCONT');
    return { ...(await askOthers(url)), growth: memoryOf(pid).most - before };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

async function askOthers(url: string): Promise<Pick<Flood, 'slowest' | 'failures'>> {
  const end = performance.now() + DURATION_MS;
  let slowest = 0;
  let failures = 0;
  while (performance.now() < end) {
    const [time, isWell] = await askHealth(url);
    slowest = Math.max(slowest, time);
    if (!isWell) failures += 1;
    await sleep(20);
  }
  return { slowest: Math.round(slowest), failures };
}
