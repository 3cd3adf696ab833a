import { type Stats, watchFile } from 'node:fs';
import type { Finding } from '../../plugins-sdk/define.ts';
import { MissingKey, overruled, signerVariables } from '../../plugins-sdk/signing/variables.ts';
import { reportCrashesTo } from '../../service/crash.ts';
import type { Service } from '../../service/index.ts';
import { createLog, logSettings, type ProcessLog } from '../../service/log.ts';
import type { ReadVariables } from '../../service/reload.ts';
import {
  environmentFile,
  openFileWarning,
  readEnvironment,
  userPath,
  whereKeyWasSought,
} from '../../service/surroundings.ts';
import { startWatchdog, watchdogSeconds } from '../../service/watchdog.ts';
import { configuredWorkers, MOST_WORKERS, refusePipes } from '../../service/workers/count.ts';
import { readWorkerIdentity } from '../../service/workers/link.ts';
import { checkedOption, type Given } from '../arguments.ts';

/** Milliseconds between looks at a watched file. */
const WATCH_INTERVAL_MS = 300;

/**
 * Starts the service; resolves with the exit code once SIGTERM or SIGINT has stopped it. SIGHUP, and with `--watch` every
 * change of the config or variables file, reloads the config.
 */
export async function start(given: Given): Promise<number> {
  const asked = askedWorkers(given);
  // Before anything slow: a signal during start-up ends the process as cleanly as one that comes later.
  const signalled = firstSignal();
  const identity = readWorkerIdentity();
  const reloads = new Reloads();
  process.on('SIGHUP', () => reloads.ask());
  const file = userPath(given.value('config'));
  const envFile = given.optional('env');
  const files = [file, environmentFile(envFile)];
  // Workers reload when the primary process says so.
  if (given.flag('watch') && identity === undefined) for (const path of files) watch(path, () => reloads.ask());
  const outside = signerVariables(process.env);
  const doubts: Finding[] = [];
  const env = await Promise.race([readEnvironment(envFile, (finding) => doubts.push(finding)), signalled]);
  if (typeof env === 'string') return 0;
  const settings = { ...logSettings(env), ...(identity && { worker: identity.number }) };
  const log = createLog(settings);
  reportCrashesTo(log);
  // Of several workers the primary process says so.
  const exposed = identity === undefined ? openFileWarning(envFile) : undefined;
  if (exposed !== undefined) log.warn(exposed);
  const warn = ({ path, message }: Finding) => identity === undefined && log.warn(`${path}: ${message}`);
  doubts.forEach(warn);
  const seconds = watchdogSeconds(env);
  try {
    const count = identity === undefined ? (asked ?? (await configuredWorkers(file, env))) : 1;
    const now = () => variables(envFile, outside, warn);
    if (count > 1) {
      await refusePipes(files);
      return await supervise(count, { signalled, log, reloads, variables: outside, now });
    }
    startWatchdog(seconds, settings, log);
    if (identity !== undefined)
      return await (await worker()).work({ identity, file, env, log, variables: now, signalled });
    return await serveUntil(signalled, log, async () => {
      const service = await (await import('../../service/index.ts')).startService({ file, env, log });
      reloads.answerWith(() => service.reload(now));
      return service;
    });
  } catch (error) {
    if (!(error instanceof MissingKey)) throw error;
    throw new Error(`${error.message}; ${await whereKeyWasSought(error.names, envFile)}`);
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

const worker = () => import('../../service/workers/worker.ts');

interface Supervised {
  readonly signalled: Promise<string>;
  readonly log: ProcessLog;
  readonly reloads: Reloads;
  readonly variables: Readonly<Record<string, string>>;
  readonly now: ReadVariables;
}

async function supervise(count: number, options: Supervised): Promise<number> {
  const { signalled, log, reloads, variables, now } = options;
  const { Primary } = await import('../../service/workers/primary.ts');
  const primary = new Primary({ count, log, variables });
  const ended = primary.run(signalled);
  const reload = async () => {
    if (await primary.reload()) log.setLevel(logSettings(await now()).level);
  };
  // The workers have read the same file, and refuse what cannot be read.
  reloads.answerWith(() => reload().catch(() => undefined));
  return ended;
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

/** Listens for SIGHUP from the very start, since it would end the process otherwise. An early one is answered after the start. */
class Reloads {
  #early = false;
  #reload: (() => unknown) | undefined;

  ask(): void {
    if (this.#reload === undefined) this.#early = true;
    else this.#reload();
  }

  answerWith(reload: () => unknown): void {
    this.#reload = reload;
    if (this.#early) reload();
  }
}

/** Tells of changes of a file, which need not be there yet, and may be replaced or a link to another. */
function watch(path: string, changed: () => void): void {
  watchFile(path, { interval: WATCH_INTERVAL_MS, persistent: false }, (now: Stats, before: Stats) => {
    // The first call also comes for a file that is not there.
    if (now.ino !== 0 || before.ino !== 0) changed();
  });
}

/** The variables as they are now, but for those of the signer that came with the process, and win for as long as it lives. */
async function variables(
  envFile: string | undefined,
  outside: Readonly<Record<string, string>>,
  warn: (finding: Finding) => void,
) {
  const hidden = new Set([...Object.keys(outside), ...overruled(outside)]);
  const env = Object.entries(await readEnvironment(envFile, warn)).filter(([name]) => !hidden.has(name));
  return Object.fromEntries(env);
}
