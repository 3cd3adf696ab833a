import type { Given } from '../arguments.ts';
import { reportCrashesTo } from '../crash.ts';
import { createLog, logSettings, type ProcessLog } from '../log.ts';
import type { Service } from '../service.ts';
import { readEnvironment, userPath } from '../surroundings.ts';

/** Starts the service; resolves with the exit code once SIGTERM or SIGINT has stopped it. */
export async function start(given: Given): Promise<number> {
  // Before anything slow: a signal during start-up ends the process as cleanly as one that comes later.
  const signalled = firstSignal();
  const file = userPath(given.value('config'));
  const env = await readEnvironment(given.optional('env'));
  const log = createLog(logSettings(env));
  reportCrashesTo(async (message) => {
    log.error(message);
    await log.drain();
  });
  try {
    return await serveUntil(signalled, log, async () =>
      (await import('../service.ts')).startService({ file, env, log }),
    );
  } finally {
    await log.drain();
  }
}

async function serveUntil(signalled: Promise<string>, log: ProcessLog, begin: () => Promise<Service>): Promise<number> {
  const service = await Promise.race([begin(), signalled]);
  const signal = await signalled;
  log.info('stopping', { signal });
  if (typeof service !== 'string') await service.stop();
  log.info('stopped');
  return 0;
}

/** Further signals change nothing: the listeners stay. */
function firstSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(signal));
  });
}
