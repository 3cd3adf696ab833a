import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { OTHERS } from './rounds.ts';

const START_TIMEOUT_MS = 1000;

export interface Redis {
  readonly url: string;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await listen(server, { port: 0, host: '127.0.0.1' });
  const { port } = new URL(urlOf(server));
  server.close();
  return Number(port);
}

/** A server as docs/state.md would have it, on the core of all that is not measured; nothing where it is not installed. */
export async function startRedis(folder: string): Promise<Redis | undefined> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return undefined;
  const port = await freePort();
  const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''];
  const words = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...durable];
  const child = spawn('taskset', ['-c', OTHERS, ...words], { stdio: 'ignore' });
  await sleep(START_TIMEOUT_MS);
  if (child.exitCode !== null) throw new Error('redis-server does not run');
  const stop = async () => {
    const gone = once(child, 'exit');
    child.kill();
    await gone;
  };
  return { url: `redis://127.0.0.1:${port}`, stop };
}
