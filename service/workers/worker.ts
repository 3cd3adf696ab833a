import cluster from 'node:cluster';
import { once } from 'node:events';
import { silentLog } from '../../plugins-sdk/log.ts';
import { type ServiceOptions, startService } from '../index.ts';
import type { ProcessLog } from '../log.ts';
import type { ReadVariables } from '../reload.ts';
import { describeError } from '../terminal.ts';
import { type Ask, openLine } from './line.ts';
import { type FromPrimary, type FromWorker, type WorkerIdentity, workerLink } from './link.ts';

/** The options of one worker. */
export interface WorkerOptions extends ServiceOptions {
  readonly identity: WorkerIdentity;
  readonly log: ProcessLog;
  readonly startWatchdog: () => void;
  /** Reads the environment variables when a reload begins. */
  readonly variables: ReadVariables;
  /** Resolves with the first signal to end this process. */
  readonly signalled: Promise<string>;
}

/** Serves as one of several processes, until a signal or until the primary is gone. Resolves with the exit code. */
export async function work({ identity, variables, signalled, ...started }: WorkerOptions): Promise<number> {
  const { log } = started;
  // Only one worker logs the news, which are the same in all workers.
  const newsOf = (isFirst: boolean) => (isFirst ? log : { ...silentLog, error: log.error });
  let isEnding = false;
  const ask: Ask<FromWorker> = openLine(process, async (question: FromPrimary) => {
    if (question.kind === 'offer') return link.own(question.topic).catch(() => undefined);
    const isNew = await (await starting).reload(variables, newsOf(question.isFirst));
    return isEnding ? undefined : isNew;
  });
  const link = workerLink(identity, ask);
  const starting = startService({ ...started, news: newsOf(identity.number === 1 || identity.restarts > 0), link });
  // Otherwise node would end the process at once when the primary is gone.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const end = Promise.race([signalled, process.connected ? once(process, 'disconnect') : undefined]);
  try {
    if ((await Promise.race([starting, end.then(() => undefined)])) === undefined) return 0;
    // The start has written this worker's lines: they come before the primary's that all are ready, unless the reader is slow.
    link.ready();
  } catch (error) {
    if (identity.restarts === 0) throw error;
    for (const text of describeError(error)) log.error(text);
    return 1;
  }
  await end;
  isEnding = true;
  await (await starting).stop();
  return 0;
}
