import { hash } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Operation, OperationResult } from '../plugins-sdk/define.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { codeOf, messageOf } from './text.ts';

/** What an operator asks for. */
export interface AskedOperation {
  readonly name: string;
  readonly words: Readonly<Record<string, string>>;
}

type Answer = { readonly results: readonly OperationResult[] } | { readonly error: string };

export type Operations = readonly (readonly [name: string, run: Operation])[];

/** Bytes that the path of a socket may have on every system. Node 20 cuts longer ones silently, so that services would share one. */
const LONGEST_PATH = 103;

/** Milliseconds of silence after which a command gives up, and after which a service at work says that it is alive. */
const SILENCE_TIMEOUT_MS = 5000;
const HEARTBEAT_INTERVAL_MS = 1000;

/** Codes of errors where no process listens. */
const NOBODY: readonly string[] = ['ENOENT', 'ECONNREFUSED'];

/** The folder of the unit's `RuntimeDirectory=`, where commands look by themselves. */
const UNIT_FOLDER = '/run/signed-data-proxy';

/**
 * The sockets on which the service of a config file may take operations; it listens at the first. With systemd that is in the
 * runtime directory: a service may have temporary files that nobody else sees. Else it is in a folder of its user among those.
 * @param file absolute path of the config file.
 */
export function controlPaths(file: string): readonly [own: string, ...others: string[]] {
  const name = `${hash('sha256', file).slice(0, 16)}.control`;
  const [runtime] = (process.env.RUNTIME_DIRECTORY ?? '').split(':');
  return runtime ? [join(runtime, name)] : [join(ownFolder(), name), join(UNIT_FOLDER, name)];
}

function ownFolder(): string {
  return join(tmpdir(), `signed-data-proxy-${process.getuid?.() ?? 0}`);
}

/** Has all plugins that know an operation do it. @throws Error */
export async function runOperation(operations: Operations, { name, words }: AskedOperation) {
  const known = operations.filter(([each]) => each === name);
  if (known.length === 0) throw new Error(`no plugin of this config knows "${name}"`);
  const results: OperationResult[] = [];
  for (const [, run] of known) results.push(...(await run(words)));
  return results;
}

/** Where operators of the same machine, as the same user or root, ask a running service for something. */
export function controlAt(path: string, log: Log, operations: () => Operations) {
  let server: Server | undefined;
  const unreachable = (error: unknown) =>
    log.warn('operators cannot reach this service by commands', { path, detail: messageOf(error) });
  return {
    /** Listens, unless it does already or there is nothing to ask for. A service that cannot listen serves all the same. */
    open: async (): Promise<void> => {
      if (server !== undefined || operations().length === 0) return;
      try {
        if (dirname(path) === ownFolder()) await mkdir(ownFolder(), { recursive: true, mode: 0o700 });
        server = await listenAt(path, (socket) => void answer(socket, operations));
        // Later, too: without a file descriptor left it cannot accept a connection.
        server?.on('error', unreachable);
      } catch (error) {
        unreachable(error);
      }
    },
    close: () => void server?.close(),
  };
}

async function answer(socket: Socket, operations: () => Operations): Promise<void> {
  // Whoever asked may have gone.
  socket.on('error', () => undefined);
  // White space before JSON means nothing.
  const heartbeat = setInterval(() => socket.write(' '), HEARTBEAT_INTERVAL_MS).unref();
  let said: Answer;
  try {
    // All is read, and the other half of the connection stays.
    const asked = await text(socket.iterator({ destroyOnReturn: false }));
    said = { results: await runOperation(operations(), JSON.parse(asked)) };
  } catch (error) {
    said = { error: messageOf(error) };
  } finally {
    clearInterval(heartbeat);
  }
  socket.end(JSON.stringify(said));
}

/** @returns what a running service answers; nothing where none listens. @throws Error for what it says or cannot say. */
export async function askControl(path: string, asked: AskedOperation): Promise<readonly OperationResult[] | undefined> {
  const socket = await reach(path);
  if (socket === undefined) return undefined;
  // The system accepts connections of a process that is stopped.
  const silent = `the service that listens at ${path} was silent for ${SILENCE_TIMEOUT_MS} ms: it is stopped or blocked. Have it go on, or end it, and look with "payments" before you try again: it may yet do what it was asked`;
  socket.setTimeout(SILENCE_TIMEOUT_MS, () => socket.destroy(new Error(silent)));
  socket.end(JSON.stringify(asked));
  const said = await text(socket);
  if (said.trim() === '') throw new Error('the service has ended before it answered');
  const answer: Answer = JSON.parse(said);
  if ('error' in answer) throw new Error(answer.error);
  return answer.results;
}

/** @throws Error */
async function reach(path: string): Promise<Socket | undefined> {
  try {
    await checkPlace(path);
    const socket = connect({ path, allowHalfOpen: true });
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    const code = codeOf(error);
    if (NOBODY.includes(code)) return undefined;
    if (code === 'unknown') throw error;
    throw new Error(`${path} cannot be asked (${code}): use the command as the user of the service, or as root`);
  }
}

/**
 * Checks that a socket can be there, and by nobody else's doing: what is asked may hold keys of nodes, and what is answered is
 * believed. @throws Error
 */
async function checkPlace(path: string): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH)
    throw new Error(`${path} is too long for a socket: set TMPDIR to a shorter path for service and command`);
  const folder = dirname(path);
  const about = await lstat(folder);
  // Among the temporary files anybody could have made it.
  const isOwn = folder !== ownFolder() || about.uid === process.getuid?.();
  if (!about.isDirectory() || !isOwn || (about.mode & 0o022) !== 0)
    throw new Error(
      `${folder} is not a folder of this user alone: remove it, or set TMPDIR to another folder for service and command`,
    );
}

/** @returns nothing where another process of the service listens already. @throws Error */
async function listenAt(path: string, answer: (socket: Socket) => void): Promise<Server | undefined> {
  const other = await reach(path);
  if (other !== undefined) return void other.destroy();
  // Left behind by a process that was killed.
  await rm(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, answer).unref();
  listenPrivately(server, path);
  await once(server, 'listening');
  return server;
}

/** The socket is made at once, so that nothing else is made with this mask; a worker does not ask its primary to listen. */
function listenPrivately(server: Server, path: string): void {
  const mask = process.umask(0o177);
  try {
    server.listen({ path, exclusive: true });
  } finally {
    process.umask(mask);
  }
}
