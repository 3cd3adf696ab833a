import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { type Address, listen } from '../../lib/http/listen.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';
import { type Service, type ServiceOptions, startService } from '../index.ts';
import type { ProcessLog } from '../log.ts';
import { faultsOf, type ReadVariables } from '../reload-faults.ts';
import { describeError } from '../terminal.ts';
import { type FromPrimary, type FromWorker, readFromPrimary } from './messages.ts';
import { PeerWorkers } from './peer-workers.ts';
import type { WorkerIdentity } from './worker-identity.ts';
import type { Prepared, WorkerLink } from './worker-link.ts';

/** Milliseconds that the primary has to say what a signal to this process means. */
const PRIMARY_TIMEOUT_MS = 5000;
/** Milliseconds that a config which was prepared has to stop, once the service has. */
const LAST_STEPS_TIMEOUT_MS = 1000;

export interface WorkerOptions extends ServiceOptions {
  readonly identity: WorkerIdentity;
  readonly log: ProcessLog;
  /** What the variables are when a reload begins. */
  readonly variables: ReadVariables;
  /** Resolves with the first signal that this process is to end. */
  readonly signalled: Promise<string>;
}

type Stop = Pick<Extract<FromPrimary, { kind: 'stop' }>, 'signal' | 'others'>;

/** Serves as one of several processes until the primary says otherwise, or is gone; resolves with the exit code. */
export async function work(options: WorkerOptions): Promise<number> {
  const worker = new Worker(options);
  const service = await worker.start();
  if (typeof service === 'number') return service;
  const { signal, others } = await worker.stopped;
  const { log } = options;
  if (others) log.info('stopping', { signal });
  const dropped = worker.dropPrepared();
  await service.stop(others);
  await withTimeout(LAST_STEPS_TIMEOUT_MS, dropped);
  if (others) log.info('stopped');
  return 0;
}

function send(message: FromWorker, handle?: unknown): Promise<void> {
  // Without the primary nobody needs to hear.
  return new Promise((resolve) => {
    if (!process.connected) resolve();
    else Reflect.apply(process.send ?? (() => undefined), process, [message, handle, () => resolve()]);
  });
}

class Worker {
  readonly stopped: Promise<Stop>;
  readonly #options: WorkerOptions;
  readonly #peers: PeerWorkers;
  readonly #listener: Promise<unknown>;
  #gotListener: (handle: unknown) => void = () => undefined;
  #stop: (stop: Stop) => void = () => undefined;
  /** What this process listens with, if it was the first to do so. */
  #made: unknown;
  #service: Service | undefined;
  #prepared: Promise<Prepared | undefined> = Promise.resolve(undefined);
  #serves = false;
  #restarts = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#peers = new PeerWorkers(send, options.identity.count);
    this.stopped = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#listener = new Promise((resolve) => {
      this.#gotListener = resolve;
    });
    process.on('message', (message, handle) => {
      const known = readFromPrimary(message);
      if (known !== undefined) this.#hear(known, handle);
    });
    // Node would end the process where it stands.
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
    process.on('disconnect', () => this.#stop({ signal: 'no primary process', others: false }));
    if (!process.connected) this.#stop({ signal: 'no primary process', others: false });
    void options.signalled.then((signal) => {
      void send({ kind: 'leaving', signal });
      setTimeout(() => this.#stop({ signal, others: true }), PRIMARY_TIMEOUT_MS);
    });
  }

  /** @returns the exit code when there is none to serve. */
  async start(): Promise<Service | number> {
    try {
      const { file, env, log } = this.#options;
      const service = await Promise.race([startService({ file, env, log, link: this.#link() }), this.stopped]);
      if (!('stopTime' in service)) return 0;
      this.#service = service;
      // What it has said comes before what the primary says of all.
      log.flush();
      if (this.#serves) service.serve();
      void send({ kind: 'ready', stopTime: service.stopTime() }, this.#made);
      return service;
    } catch (error) {
      await withTimeout(PRIMARY_TIMEOUT_MS, send({ kind: 'failed', lines: describeError(error) }));
      return 1;
    }
  }

  /** Stops what was prepared and will never be in force. */
  async dropPrepared(): Promise<void> {
    const prepared = await this.#prepared.catch(() => undefined);
    this.#prepared = Promise.resolve(undefined);
    await prepared?.abort();
  }

  #link(): WorkerLink {
    return {
      announces: this.#options.identity.announces,
      workers: this.#peers,
      measure: (meters) => this.#measure(meters),
      listen: (server, address, config) => this.#listen(server, address, config),
    };
  }

  #measure(meters: Meters): void {
    meters.gauge({ name: 'workers', help: 'Processes of the service that answer' }, () => 1);
    const restarts = { name: 'worker_restarts', help: 'Workers that were replaced since the start' };
    meters.gauge({ ...restarts, across: 'max' }, () => this.#restarts);
  }

  async #listen(server: Server, address: Address, config: string): Promise<void> {
    void send({ kind: 'started', config });
    const shared = await this.#listener;
    if (shared !== undefined)
      return new Promise((resolve, reject) => server.once('error', reject).listen(shared, resolve));
    await listen(server, { ...address, exclusive: true });
    this.#made = Reflect.get(server, '_handle');
  }

  #hear(message: FromPrimary, handle: unknown): void {
    if (message.kind === 'listen') this.#gotListener(handle);
    else if (message.kind === 'serve') this.#serve(message.restarts);
    else if (message.kind === 'prepare') void this.#prepare(message.id, message.announces);
    else if (message.kind === 'commit') void this.#commit();
    else if (message.kind === 'abort') void this.dropPrepared();
    else if (message.kind === 'stop') this.#stop(message);
    else if (message.kind === 'ask') void this.#peers.answer(message.id, message.topic);
    else this.#peers.gathered(message.id, message.values);
  }

  #serve(restarts: number): void {
    this.#serves = true;
    this.#restarts = restarts;
    this.#service?.serve();
  }

  async #prepare(id: number, announces: boolean): Promise<void> {
    try {
      // One that listens just now hears of a reload, too.
      while (this.#service === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
      this.#prepared = this.#service.prepare(this.#options.variables, announces);
      const prepared = await this.#prepared;
      if (prepared !== undefined) void send({ kind: 'prepared', id, config: prepared.config });
    } catch (error) {
      void send({ kind: 'refused', id, lines: faultsOf(error) });
    }
  }

  async #commit(): Promise<void> {
    const prepared = await this.#prepared.catch(() => undefined);
    this.#prepared = Promise.resolve(undefined);
    prepared?.commit();
    if (this.#service !== undefined) void send({ kind: 'committed', stopTime: this.#service.stopTime() });
  }
}
