import type { Log } from '../../plugins-sdk/index.ts';
import type { Recorder } from './recorder.ts';

/** What is counted, from the first start of the metrics until a config without them. */
export class Recording {
  readonly #log: Log;
  readonly #version: string;
  #loading: Promise<Recorder> | undefined;

  constructor(log: Log, version: string) {
    this.#log = log;
    this.#version = version;
  }

  /** Begins to observe the process. Once begun, it goes on as it is. */
  start(): Promise<Recorder> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async close(): Promise<void> {
    (await this.#loading)?.close();
  }

  async #load(): Promise<Recorder> {
    // The library takes time and memory that a service without metrics should not pay for.
    const { Recorder } = await import('./recorder.ts');
    return new Recorder(this.#log, this.#version);
  }
}
