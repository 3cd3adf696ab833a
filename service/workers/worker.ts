import cluster from 'node:cluster';
import { once } from 'node:events';
import { type ServiceOptions, startService } from '../index.ts';
import { type ProcessLog, quiet, type ServiceLog } from '../log.ts';
import type { ReadVariables } from '../reload.ts';
import { describeError } from '../terminal.ts';
import { Line } from './line.ts';
import { type FromPrimary, type FromWorker, type WorkerIdentity, WorkerLink } from './link.ts';

export interface WorkerOptions extends ServiceOptions {
  readonly identity: WorkerIdentity;
  readonly log: ProcessLog;
  /** What the variables are when a reload begins. */
  readonly variables: ReadVariables;
  /** Resolves with the first signal that this process is to end. */
  readonly signalled: Promise<string>;
}

/** Serves as one of several processes until a signal, or until the primary is gone; resolves with the exit code. */
export async function work({ identity, file, env, log, variables, signalled }: WorkerOptions): Promise<number> {
  const line: Line<FromPrimary, FromWorker> = new Line(process, (message) => {
    const reloaded = (announces: boolean) =>
      announcing(announces, log, async (aloud) => (await starting).reload(variables, aloud));
    return (message.kind === 'reload' ? reloaded(message.announces) : link.own(message.topic)).catch(() => undefined);
  });
  const link = new WorkerLink(identity, line);
  const starting = announcing(identity.announces, log, (aloud) => startService({ file, env, log: aloud, link }));
  // Node would end the process where it stands.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const end = Promise.race([signalled, process.connected ? once(process, 'disconnect') : undefined]);
  try {
    const service = await Promise.race([starting, end.then(() => undefined)]);
    if (service?.lasting === undefined) return 0;
    // What it has said comes before what the primary says of all.
    log.flush();
    line.tell({ kind: 'ready', lasting: service.lasting });
  } catch (error) {
    if (identity.restarts === 0) throw error;
    for (const text of describeError(error)) log.error(text);
    return 1;
  }
  await end;
  line.tell({ kind: 'ending' });
  await (await starting).stop();
  return 0;
}

/** Has work log what other workers do not say. It may log all once it is done. */
async function announcing<T>(isAloud: boolean, log: ProcessLog, work: (log: ServiceLog) => Promise<T>): Promise<T> {
  if (isAloud) return work(log);
  const quieted = quiet(log);
  return work(quieted.log).finally(quieted.say);
}
