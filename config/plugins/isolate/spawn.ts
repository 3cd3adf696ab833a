import { Duplex } from 'node:stream';
import { OwnedProcess } from '../../../lib/process/child-process.ts';
import type { Bundle } from './bundle.ts';
import { Claims } from './claims.ts';
import { nodeOptions } from './node-options.ts';
import { Output } from './output.ts';
import { ORDERS, REPORTS } from './protocol.ts';

export interface ProcessOptions {
  readonly bundle: Bundle;
  /** MiB. */
  readonly memory: number;
  /** Told of each line that the process writes. */
  readonly line: (text: string) => void;
}

/** A process of node that evaluates a bundle, and what the service shares with it. */
export interface Spawned {
  readonly own: OwnedProcess;
  readonly claims: Claims;
  /** Nothing where the service has no descriptor left. */
  readonly orders: Duplex | undefined;
  readonly reports: Duplex | undefined;
}

const ignore = () => undefined;

/** @throws Error when no process can be started */
export function spawnPlugin({ bundle, memory, line }: ProcessOptions): Spawned {
  // Without a listener, that signal opens node's inspector, through which the network reaches the key.
  if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore);
  const claims = new Claims();
  const own = start(memory, claims);
  const { child } = own;
  const output = new Output((text) => line(bundle.locate(text)));
  for (const stream of [child.stdout, child.stderr]) if (stream) output.read(stream);
  child.once('exit', () => output.finish());
  const [orders, reports] = [ORDERS, REPORTS].map((fd) => {
    const stream: unknown = child.stdio?.[fd];
    return stream instanceof Duplex ? stream : undefined;
  });
  // A process that has lost the way to the service is of no use.
  child.once('spawn', () => reports?.once('end', () => child.kill('SIGKILL')));
  for (const stream of child.stdio ?? []) stream?.on('error', ignore);
  child.stdin?.end(bundle.code);
  return { own, claims, orders, reports };
}

function start(memory: number, claims: Claims): OwnedProcess {
  try {
    const stdio = ['pipe', 'pipe', 'pipe', 'pipe', 'pipe', claims.fd] as const;
    // In a group of its own: node signals the whole group for a handle of a child that was never spawned.
    return new OwnedProcess(nodeOptions(memory), { env: {}, cwd: '/', stdio: [...stdio], detached: true });
  } catch (error) {
    claims.close();
    throw error;
  }
}
