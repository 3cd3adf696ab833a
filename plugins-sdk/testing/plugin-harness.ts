import type { StageName } from '../../kernel/stages.ts';
import type { Definition, EndpointKeys, SimplePlugin } from '../define.ts';
import type { Services } from '../services.ts';
import type { Complaint, RequestInput, StageInput, StageOutcome } from './inputs.ts';
import type { Metrics } from './metrics.ts';
import { type Subject, TestRequest } from './request.ts';
import type { ServeOptions, ServiceConfig, TestService } from './service.ts';

export interface HarnessOptions {
  /** Milliseconds per request for all hooks together, as `timeout` sets them in the config; default the plugin's, else 1000. */
  readonly budget?: number | 'none' | undefined;
  /** What a simple plugin's file exports as `keys`; the values are those of the endpoint that a request goes to. */
  readonly keys?: EndpointKeys | undefined;
  /** The second argument of a definition's `setup`, once its `configSchema` has checked it; a factory gets its config when it is called. */
  readonly config?: unknown;
  /** The context of the test, as node:test hands it to one: the plugin is stopped when the test ends, also when it fails. */
  readonly t?: { after(end: () => Promise<void>): void } | undefined;
  /** Replaces parts of what a definition's `setup` gets. Requests go to the first of `endpoints` unless they name one. */
  readonly services?: Partial<Services> | undefined;
}

/** The plugin under test, as its harness got it. */
export interface ServedPlugin extends Pick<HarnessOptions, 'keys' | 'config' | 'budget'> {
  readonly plugin: SimplePlugin | Definition;
  /** The harness's clock: epoch milliseconds. */
  readonly now: () => number;
}

/** Makes a service of a config, and of the plugin behind those that the config names. @throws ConfigErrors as a start does */
export type Serve = (subject: ServedPlugin, config: ServiceConfig, options: ServeOptions) => Promise<TestService>;

/** One plugin, ready to be run. Each {@link PluginHarness.run} is a request of its own, with a budget of its own. */
export class PluginHarness {
  /**
   * What the service would refuse or warn of, so far. At the start: auth types and modes without their function, and findings of the
   * plugin's `check`. Of requests: failures of stages that go on without the plugin, results of a wrong shape, and invalid measurements.
   * Each drop, spent budget and 500 has its reason here. A deliberate rejection is no complaint, and neither is the notice that a plugin
   * can change what gets signed. A service of {@link serve} has a log of its own.
   */
  readonly complaints: readonly Complaint[];
  readonly #subject: Subject;
  readonly #served: TestService[] = [];

  constructor(subject: Subject) {
    this.#subject = subject;
    this.complaints = subject.complaints;
  }

  /** A request for several stages, which share its budget. */
  request(input: RequestInput = {}): TestRequest {
    return new TestRequest(this.#subject, input);
  }

  /** Runs one stage with a request of its own: see {@link TestRequest.run}. */
  async run<N extends StageName>(stage: N, input?: RequestInput & StageInput<N>): Promise<StageOutcome<N>> {
    return this.request(input).run(stage, input);
  }

  /**
   * What the plugin has measured with `services.meters`, by series as Prometheus writes them, without a prefix.
   *
   * @example
   * ```ts
   * assert.deepEqual(harness.metrics(), { 'orders_total{kind="spot"}': 2, wait_seconds_count: 1, wait_seconds_sum: 0.5 });
   * ```
   */
  metrics(): Metrics {
    return this.#subject.metrics.read();
  }

  /**
   * Moves the clock of `services.now` on, also that of services of {@link serve}: what was kept for a time is old at once. Timers do not
   * go off, and budgets are not spent. `Date.now` stays as it is: a plugin without `setup` takes its clock as an argument of its factory.
   * @param milliseconds more than 0.
   * @throws TypeError for anything else
   */
  advance(milliseconds: number): void {
    this.#subject.clock.advance(milliseconds);
  }

  /** Resolves when what the plugin has left to `services.background` has ended; failures are {@link complaints}. */
  background(): Promise<void> {
    return this.#subject.background.paid();
  }

  /**
   * A whole service in this process, without a port: its built-ins, the plugins that the config names, and behind them this one,
   * set up anew. Upstreams are asked over HTTP, as ever.
   * @param config as in the config file.
   * @throws what the service would not start with, in the same words.
   */
  async serve(config: ServiceConfig, options: ServeOptions = {}): Promise<TestService> {
    const service = await this.#subject.serve(config, options);
    this.#served.push(service);
    return service;
  }

  /** Stops the plugin, for one that has `stop`, and the services with it. */
  async stop(deadline = 1000): Promise<void> {
    await Promise.all(this.#served.map((service) => service.stop()));
    await this.#subject.plugin.stop?.(deadline);
  }
}
