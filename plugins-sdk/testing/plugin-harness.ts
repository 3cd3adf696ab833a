import type { StageName } from '../../kernel/stages.ts';
import type { Definition, EndpointKeys, SimplePlugin } from '../define.ts';
import type { Services } from '../services.ts';
import type { Complaint, RequestInput, StageInput, StageOutcome } from './inputs.ts';
import type { Metrics } from './metrics.ts';
import { type Subject, TestRequest } from './request.ts';
import type { ServeOptions, ServiceConfig, TestService } from './service.ts';

/** The options of a {@link PluginHarness}. */
export interface HarnessOptions {
  /**
   * Milliseconds per request for all hooks together, as `timeout` in the config; default the plugin's own budget, else 1000.
   * `none` is for `callApi`, `answer` and `present`: other hooks then have 1000.
   */
  readonly budget?: number | 'none' | undefined;
  /** The `keys` that a simple plugin's file exports. Hooks get the values of the endpoint that a request goes to. */
  readonly keys?: EndpointKeys | undefined;
  /** The config for a definition's `setup`, which its `configSchema` checks first. A factory gets its config from the test. */
  readonly config?: unknown;
  /** The test's context from node:test. The plugin is stopped when the test ends, even if it fails. */
  readonly t?: { after(end: () => Promise<void>): void } | undefined;
  /** Services that replace those of `setup`. Requests go to the first of `endpoints` unless they name one. */
  readonly services?: Partial<Services> | undefined;
}

/** The plugin under test, with the options that its harness got. */
export interface ServedPlugin extends Pick<HarnessOptions, 'keys' | 'config' | 'budget'> {
  readonly plugin: SimplePlugin | Definition;
  /** The harness's clock: epoch milliseconds. */
  readonly now: () => number;
}

/** Makes a service from a config, with the plugin after those that the config names. @throws ConfigErrors as a start does. */
export type Serve = (subject: ServedPlugin, config: ServiceConfig, options: ServeOptions) => Promise<TestService>;

/** A plugin under test. Each {@link PluginHarness.run} is a new request with a new budget. */
export class PluginHarness {
  /**
   * The faults so far that the service would refuse or warn of. At the start: auth types and modes without their function, and
   * findings of the plugin's `check`. In requests: failures after which a request goes on, results of a wrong shape, and
   * invalid measurements. Each drop, spent budget and 500 has its reason here. A deliberate rejection is no complaint, nor is
   * the notice that a plugin can change what gets signed. A service of {@link serve} has its own log.
   */
  readonly complaints: readonly Complaint[];
  readonly #subject: Subject;
  readonly #served: TestService[] = [];

  constructor(subject: Subject) {
    this.#subject = subject;
    this.complaints = subject.complaints;
  }

  /** Makes a request for several stages, which share its budget. */
  request(input: RequestInput = {}): TestRequest {
    return new TestRequest(this.#subject, input);
  }

  /** Runs one stage with a new request: see {@link TestRequest.run}. */
  async run<N extends StageName>(stage: N, input?: RequestInput & StageInput<N>): Promise<StageOutcome<N>> {
    return this.request(input).run(stage, input);
  }

  /**
   * Returns what the plugin has measured with `services.meters`, by series as Prometheus writes them, without a prefix.
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
   * Moves the clock of `services.now` forward, also in services of {@link serve}, so that values kept for a time expire. Timers
   * do not fire, and no budget is spent. `Date.now` does not change: the factory of a plugin without `setup` can take a clock.
   */
  advance(milliseconds: number): void {
    this.#subject.advance(milliseconds);
  }

  /** Resolves when the plugin's work in `services.background` has ended. Its failures are {@link complaints}. */
  background(): Promise<void> {
    return this.#subject.background.paid();
  }

  /**
   * Makes a whole service in this process, without a port: its built-ins, the plugins that the config names, and after them this
   * one, set up anew. It calls upstreams over HTTP, as in operation.
   * @param config as in the config file.
   * @throws the error with which the service would not start.
   */
  async serve(config: ServiceConfig, options: ServeOptions = {}): Promise<TestService> {
    const service = await this.#subject.serve(config, options);
    this.#served.push(service);
    return service;
  }

  /** Stops the plugin and the services with it. */
  async stop(deadline = 1000): Promise<void> {
    await Promise.all(this.#served.map((service) => service.stop()));
    await this.#subject.plugin.stop?.(deadline);
  }
}
