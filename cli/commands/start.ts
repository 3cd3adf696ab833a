import { watchFile } from 'node:fs';
import type { Given } from '../arguments.ts';
import { reportCrashesTo } from '../crash.ts';
import { createLog, logSettings, type ProcessLog } from '../log.ts';
import type { Service } from '../service.ts';
import { environmentFile, readEnvironment, userPath } from '../surroundings.ts';

/** Milliseconds between looks at a watched file. It need not be there yet, and may be replaced or a link to another. */
const LOOK = 300;

/**
 * Starts the service; resolves with the exit code once SIGTERM or SIGINT has stopped it. SIGHUP, and with `--watch` every
 * change of the config or variables file, reloads the config.
 */
export async function start(given: Given): Promise<number> {
  // Before anything slow: a signal during start-up ends the process as cleanly as one that comes later.
  const signalled = firstSignal();
  const hangUps = new HangUps();
  const file = userPath(given.value('config'));
  const envFile = given.optional('env');
  const env = await readEnvironment(envFile);
  const log = createLog(logSettings(env));
  reportCrashesTo(async (message) => {
    log.error(message);
    await log.drain();
  });
  const watched = given.flag('watch') ? [file, environmentFile(envFile)] : [];
  try {
    return await serveUntil(signalled, log, async () => {
      const service = await (await import('../service.ts')).startService({ file, env, log });
      const reload = () => void reloadService(service, envFile, log);
      hangUps.listen(reload);
      for (const path of watched) watchFile(path, { interval: LOOK, persistent: false }, reload);
      return service;
    });
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

/** SIGHUP from the very start, when it would otherwise end the process; one that comes early is answered later. */
class HangUps {
  #missed = false;
  #listener = (): void => {
    this.#missed = true;
  };

  constructor() {
    process.on('SIGHUP', () => this.#listener());
  }

  listen(listener: () => void): void {
    this.#listener = listener;
    if (this.#missed) listener();
  }
}

async function reloadService(service: Service, envFile: string | undefined, log: ProcessLog): Promise<void> {
  try {
    await service.reload(await readEnvironment(envFile));
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    log.error('the config was not reloaded: the one before stays in force');
  }
}
