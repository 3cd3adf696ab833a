import type { ConfigKey } from '../../../plugins-sdk/config-key.ts';
import type { Behaviour, SimplePlugin } from '../../../plugins-sdk/define.ts';
import { isDefinition } from '../../../plugins-sdk/host/check-definition.ts';
import { hooksWithKeys, keyValuesOf } from '../../../plugins-sdk/host/endpoint-keys.ts';
import { PluginProblem } from '../../../plugins-sdk/host/plugin-problem.ts';
import type { Services } from '../../../plugins-sdk/services.ts';
import type { PluginModule } from '../module-exports.ts';
import { type Bundle, bundlePlugin } from './bundle.ts';
import { instruments } from './instruments.ts';
import { Isolate } from './isolate.ts';
import { unpackSchema } from './packed-schema.ts';
import { Peer } from './peer.ts';
import type { PackedSchema } from './protocol.ts';
import { standIn } from './stand-in.ts';
import { Talk } from './talk.ts';

/** MiB of memory that the process of a plugin may take, where the config does not say. */
const DEFAULT_MEMORY_MIB = 128;

/** Milliseconds that a process that is started anew has to get ready. */
const START_TIMEOUT_MS = 30_000;

type Members = Readonly<Record<string, unknown>>;

/** What stands under `isolate`. */
export type Isolation = true | { readonly memory: number };

/** A plugin of which this process has nothing but its shape: its module was evaluated in another one. */
export class IsolatedPlugin {
  readonly #bundle: Bundle;
  readonly #memory: number;
  readonly #peer: Peer;
  readonly #talk: Talk;
  #isolate: Isolate | undefined;

  private constructor(bundle: Bundle, memory: number) {
    this.#bundle = bundle;
    this.#memory = memory;
    let talk: Talk | undefined;
    // What it writes while it is looked at, it will write again once it runs.
    this.#peer = new Peer({ bundle, memory, line: () => undefined }, (report) => talk?.take(report));
    talk = new Talk(this.#peer);
    this.#talk = talk;
  }

  /** Makes a process to look at the plugin; to be closed. @throws PluginProblem */
  static async open(url: string, isolation: Isolation): Promise<IsolatedPlugin> {
    return new IsolatedPlugin(await bundlePlugin(url), isolation === true ? DEFAULT_MEMORY_MIB : isolation.memory);
  }

  /** Milliseconds by the clock of what it is charged for, once it is set up. */
  readonly clock = (): number => this.#isolate?.now() ?? performance.now();

  /** What the module exports: stand-ins, which ask the other process. @throws what the module throws, and PluginProblem */
  async exports(): Promise<PluginModule> {
    const report = await this.#talk.next('loaded');
    const plugin = report.plugin.is === 'function' ? this.#factory() : standIn(report.plugin);
    if (isDefinition(plugin)) {
      throw new PluginProblem(
        'has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own',
      );
    }
    const configSchema = this.#schema(report.configSchema, 'configSchema');
    return { plugin, configSchema, keys: this.#schema(report.keys, 'keys') };
  }

  close(): Promise<unknown> {
    this.#peer.kill('it was looked at');
    return this.#peer.ended;
  }

  /** What sets the plugin up: its processes start and stop with the service. */
  behaviour(
    { name, hooks }: SimplePlugin,
    keys: readonly ConfigKey[],
    config: unknown,
  ): (services: Services) => Behaviour {
    return ({ endpoints, log, meters, status, budget }) => {
      const { count, add, remove } = instruments(meters, name);
      const isolate = new Isolate({
        bundle: this.#bundle,
        memory: this.#memory,
        config,
        budget: budget === 'none' ? START_TIMEOUT_MS : budget,
        patience: START_TIMEOUT_MS,
        line: (text) => log.info(`plugin "${name}": ${text}`),
        log: (level, message) => log[level](`plugin "${name}": ${message}`),
        count,
      });
      this.#isolate = isolate;
      status.show('breakers', () => [{ name: `plugin "${name}"`, state: isolate.isReady ? 'up' : 'away' }]);
      const forward = (hook: string) => (context: object) => isolate.call(hook, context as Members);
      const forwarding = Object.fromEntries(Object.keys(hooks).map((hook) => [hook, forward(hook)]));
      return {
        hooks: hooksWithKeys(forwarding, keys, keyValuesOf(keys, endpoints)),
        start: async () => {
          add(isolate);
          await isolate.start();
          log.info(`plugin "${name}" runs in a process of its own`);
        },
        stop: async () => {
          await isolate.stop();
          remove(isolate);
        },
      };
    };
  }

  #factory() {
    return async (config: unknown): Promise<unknown> =>
      standIn((await this.#talk.ask({ k: 'make', config }, 'made')).plugin);
  }

  #schema(packed: PackedSchema, name: string): unknown {
    if (packed.is === 'problem')
      throw new PluginProblem(`its "${name}" cannot be carried to the service: it ${packed.problem}`);
    if (packed.is === 'schema') return unpackSchema(packed.packed);
    if (packed.is === 'absent') return undefined;
    // What it makes of the block is made again by each process, which alone can have it.
    return {
      parse: async (value: unknown) => {
        await this.#talk.ask({ k: 'parse', value }, 'parsed');
        return value;
      },
    };
  }
}
