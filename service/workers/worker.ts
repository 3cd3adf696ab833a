import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { type Address, listen } from '../../lib/http/listen.ts';
import { deferred } from '../../lib/time/deferred.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';
import { type Service, type ServiceOptions, startService } from '../index.ts';
import type { ProcessLog } from '../log.ts';
import { faultsOf, type ReadVariables } from '../reload-faults.ts';
import { describeError } from '../terminal.ts';
import { Line } from './line.ts';
import type { FromPrimary, FromWorker, Preparation, Stop, WorkerIdentity } from './messages.ts';
import { PeerWorkers } from './peer-workers.ts';
import type { Prepared, WorkerLink } from './worker-link.ts';

/** Milliseconds that the primary has to hear why this process ends. */
const PRIMARY_TIMEOUT_MS = 5000;

export interface WorkerOptions extends ServiceOptions {
  readonly identity: WorkerIdentity;
  readonly log: ProcessLog;
  /** What the variables are when a reload begins. */
  readonly variables: ReadVariables;
  /** Resolves with the first signal that this process is to end. */
  readonly signalled: Promise<string>;
}

/** Serves as one of several processes until the primary says otherwise, or is gone; resolves with the exit code. */
export async function work(options: WorkerOptions): Promise<number> {
  const worker = new Worker(options);
  const { log } = options;
  const service = await worker.start();
  if (typeof service === 'number') return service;
  const { signal, others } = await worker.stopped;
  if (others) log.info('stopping', { signal });
  await service.stop(others);
  if (others) log.info('stopped');
  return 0;
}

/** This process, and its side of the line to the primary. */
class Worker implements WorkerLink {
  readonly announces: boolean;
  readonly workers: PeerWorkers;
  readonly #options: WorkerOptions;
  readonly #line: Line<FromPrimary, FromWorker>;
  readonly #stop = deferred<Stop>();
  readonly stopped = this.#stop.promise;
  readonly #listener = deferred<unknown>();
  /** What this process listens with, if it was the first to do so. */
  #made: unknown;
  #service: Service | undefined;
  #prepared: Promise<Prepared | undefined> | undefined;
  #restarts = 0;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.announces = options.identity.announces;
    this.#line = new Line(process, (message, handle) => this.#hear(message, handle));
    this.workers = new PeerWorkers(this.#line, options.identity.count);
    // Node would end the process where it stands.
    if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
    const orphaned = () => this.#stop.resolve({ kind: 'stop', signal: 'no primary process', others: false });
    process.on('disconnect', orphaned);
    if (!process.connected) orphaned();
    void options.signalled.then((signal) => this.#line.tell({ kind: 'leaving', signal }));
  }

  /** @returns the exit code when there is none to serve. */
  async start(): Promise<Service | number> {
    const { file, env, log } = this.#options;
    try {
      const service = await Promise.race([startService({ file, env, log, link: this }), this.stopped]);
      if ('kind' in service) return 0;
      this.#service = service;
      // What it has said comes before what the primary says of all.
      log.flush();
      void this.#line.tell({ kind: 'ready' }, this.#made);
      return service;
    } catch (error) {
      await withTimeout(PRIMARY_TIMEOUT_MS, this.#line.tell({ kind: 'failed', lines: describeError(error) }));
      return 1;
    }
  }

  measure(meters: Meters): void {
    meters.gauge({ name: 'workers', help: 'Processes of the service that answer' }, () => 1);
    const restarts = { name: 'worker_restarts', help: 'Workers that were replaced since the start' };
    meters.gauge({ ...restarts, across: 'max' }, () => this.#restarts);
  }

  async listen(server: Server, address: Address, config: string): Promise<void> {
    void this.#line.tell({ kind: 'started', config });
    const shared = await this.#listener.promise;
    if (shared !== undefined)
      return new Promise((resolve, reject) => server.once('error', reject).listen(shared, resolve));
    await listen(server, { ...address, exclusive: true });
    this.#made = Reflect.get(server, '_handle');
  }

  #hear(message: FromPrimary, handle: unknown): unknown {
    if (message.kind === 'stop') return this.#stop.resolve(message);
    if (message.kind === 'prepare') return this.#prepare(message.announces);
    if (message.kind === 'offer') return this.workers.own(message.topic).catch(() => undefined);
    if (message.kind === 'listen') return this.#listener.resolve(handle);
    if (message.kind === 'serve') {
      this.#restarts = message.restarts;
      return this.#service?.serve();
    }
    return this.#prepared?.then((prepared) => prepared?.[message.kind]()).catch(() => undefined);
  }

  async #prepare(announces: boolean): Promise<Preparation> {
    try {
      this.#prepared = this.#service?.prepare(this.#options.variables, announces);
      const { config } = (await this.#prepared) ?? {};
      return config === undefined ? { lines: ['the worker stops'] } : { config };
    } catch (error) {
      return { lines: faultsOf(error) };
    }
  }
}
