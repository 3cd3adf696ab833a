import { type Stats, watchFile } from 'node:fs';
import { type Deferred, deferred } from '../../lib/time.ts';
import type { Finding } from '../../plugins-sdk/define.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import { MissingKey, overruled, signerVariables } from '../../plugins-sdk/signing/variables.ts';
import { reportCrashesTo } from '../../service/crash.ts';
import { createLog, logSettings } from '../../service/log.ts';
import { reloadQueue } from '../../service/reload.ts';
import {
  environmentFile,
  openFileWarning,
  readEnvironment,
  userPath,
  whereKeyWasSought,
} from '../../service/surroundings.ts';
import { watchdogOf, watchdogSeconds } from '../../service/watchdog.ts';
import { configuredWorkers, MOST_WORKERS, refusePipes } from '../../service/workers/count.ts';
import { readWorkerIdentity } from '../../service/workers/link.ts';
import type { WorkerOptions } from '../../service/workers/worker.ts';
import { checkedOption, type Given } from '../arguments.ts';

/** Milliseconds between two checks of a watched file. */
const WATCH_INTERVAL_MS = 300;

/**
 * Starts the service; resolves with the exit code once SIGTERM or SIGINT has stopped it. SIGHUP, and with `--watch` every
 * change of the config or variables file, reloads the config.
 */
export async function start(given: Given): Promise<number> {
  const asked = askedWorkers(given);
  // Listens before any slow work, so that a signal during the start ends the process as cleanly as a later one.
  const signalled = firstSignal();
  const identity = readWorkerIdentity();
  // Without a listener SIGHUP would end the process. An early one is handled after the start.
  const reload: Reload = deferred();
  const reloadSoon = () => void reload.promise.then((now) => now());
  process.on('SIGHUP', reloadSoon);
  const file = userPath(given.value('config'));
  const envFile = given.optional('env');
  const files = [file, environmentFile(envFile)];
  // Workers reload when the primary process says so.
  if (given.flag('watch') && identity === undefined) for (const path of files) watch(path, reloadSoon);
  const outside = signerVariables(process.env);
  const doubts: Finding[] = [];
  const env = await Promise.race([readEnvironment(envFile, (finding) => doubts.push(finding)), signalled]);
  if (typeof env === 'string') return 0;
  const settings = { ...logSettings(env), ...(identity && { worker: identity.number }) };
  const log = createLog(settings);
  reportCrashesTo(log);
  // The primary process warns for all workers.
  const news = identity === undefined ? log : silentLog;
  const exposed = openFileWarning(envFile);
  if (exposed !== undefined) news.warn(exposed);
  const warn = ({ path, message }: Finding) => news.warn(`${path}: ${message}`);
  doubts.forEach(warn);
  const startWatchdog = watchdogOf(watchdogSeconds(env), settings, log);
  const service = { file, env, log, startWatchdog, signalled, variables: () => variables(envFile, outside, warn) };
  try {
    const count = identity === undefined ? (asked ?? (await configuredWorkers(file, env))) : 1;
    if (count > 1) {
      await refusePipes(files);
      return await supervise(count, service, outside, reload);
    }
    if (identity === undefined) return await serve(service, reload);
    return await (await import('../../service/workers/worker.ts')).work({ identity, ...service });
  } catch (error) {
    if (!(error instanceof MissingKey)) throw error;
    throw new Error(`${error.message}; ${whereKeyWasSought(envFile)}`);
  } finally {
    log.flush();
  }
}

function askedWorkers(given: Given): number | undefined {
  const rule = `<n> must be a whole number from 1 to ${MOST_WORKERS}, not "${given.optional('workers')}"`;
  const isRight = (text: string) => /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MOST_WORKERS;
  const text = checkedOption(given, 'workers', isRight, rule);
  return text === undefined ? undefined : Number(text);
}

/** Resolves with the function that reloads, once the service can reload. */
type Reload = Deferred<() => unknown>;
type Started = Omit<WorkerOptions, 'identity'>;
type Variables = Readonly<Record<string, string>>;

/** Runs several workers. @param outside the variables that workers get in addition to the environment. */
async function supervise(count: number, started: Started, outside: Variables, reload: Reload): Promise<number> {
  const { log, signalled, variables: now } = started;
  const { Primary } = await import('../../service/workers/primary.ts');
  const primary = new Primary(count, log, outside);
  const queue = reloadQueue();
  const again = async () => {
    const isNew = await primary.reload();
    if (isNew) log.setLevel(logSettings(await now()).level);
    return isNew;
  };
  // Errors are ignored here: the workers have read the same file, and report them.
  reload.resolve(() => queue(again).catch(() => undefined));
  return primary.run(signalled);
}

async function serve({ signalled, variables: now, ...started }: Started, reload: Reload): Promise<number> {
  const { log } = started;
  const begin = async () => {
    const service = await (await import('../../service/index.ts')).startService(started);
    reload.resolve(() => service.reload(now));
    return service;
  };
  const service = await Promise.race([begin(), signalled]);
  const signal = await signalled;
  log.info('stopping', { signal });
  if (typeof service !== 'string') await service.stop();
  log.info('stopped');
  return 0;
}

/** Resolves with the first SIGTERM or SIGINT. The listeners stay, so further signals change nothing. */
function firstSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(signal));
  });
}

/** Watches a file, which may not exist yet, and may be replaced or be a link to another file. */
function watch(path: string, changed: () => void): void {
  watchFile(path, { interval: WATCH_INTERVAL_MS, persistent: false }, (now: Stats, before: Stats) => {
    // `watchFile` also calls once for a file that does not exist.
    if (now.ino !== 0 || before.ino !== 0) changed();
  });
}

/** Reads the current variables, without signer variables that came with the process: their first values stay in force. */
async function variables(envFile: string | undefined, outside: Variables, warn: (finding: Finding) => void) {
  const hidden = new Set([...Object.keys(outside), ...overruled(outside)]);
  const env = Object.entries(await readEnvironment(envFile, warn)).filter(([name]) => !hidden.has(name));
  return Object.fromEntries(env);
}
