import type { ConfigKey } from '../../../plugins-sdk/config-key.ts';
import type { Behaviour, SimplePlugin } from '../../../plugins-sdk/define.ts';
import type { Services } from '../../../plugins-sdk/services.ts';
import { isDefinition } from '../check-definition.ts';
import { hooksWithKeys, keyValuesOf } from '../endpoint-keys.ts';
import type { PluginModule } from '../module-exports.ts';
import { PluginProblem } from '../plugin-problem.ts';
import { bundlePlugin } from './bundle.ts';
import { PluginHost } from './host.ts';
import { counting, running } from './instruments.ts';
import { unpackSchema } from './packed-schema.ts';
import { PluginProcess } from './process.ts';
import type { PackedSchema } from './protocol.ts';
import type { ProcessOptions } from './spawn.ts';
import { standIn } from './stand-in.ts';

/** MiB of memory that the process of a plugin may take, where the config does not say. */
const DEFAULT_MEMORY_MIB = 128;

/** Milliseconds that a process that is started anew has to get ready. */
const START_TIMEOUT_MS = 30_000;

type Members = Readonly<Record<string, unknown>>;
type Made = Pick<ProcessOptions, 'bundle' | 'memory'>;

/** What stands under `isolate`. */
export type Isolation = true | { readonly memory: number };

/** A plugin of which this process has nothing but its shape: its module was evaluated in another one. */
export interface IsolatedPlugin {
  /** What the module exports: stand-ins, which ask the other process. @throws what the module throws, and PluginProblem */
  exports(): Promise<PluginModule>;
  /** What sets the plugin up: its processes start and stop with the service. */
  behaviour(plugin: SimplePlugin, keys: readonly ConfigKey[], config: unknown): (services: Services) => Behaviour;
  /** Ends the process in which it was looked at. */
  close(): Promise<unknown>;
}

/** Makes a process to look at the plugin; to be closed. @throws PluginProblem */
export async function isolatePlugin(url: string, isolation: Isolation): Promise<IsolatedPlugin> {
  const memory = isolation === true ? DEFAULT_MEMORY_MIB : isolation.memory;
  const made: Made = { bundle: await bundlePlugin(url), memory };
  // What it writes while it is looked at, it will write again once it runs.
  const process = new PluginProcess({ ...made, line: () => undefined });
  return {
    exports: () => exportsOf(process),
    behaviour: (plugin, keys, config) => (services) => {
      return behaviourOf(hostOf(made, plugin, config, services), plugin, keys, services);
    },
    close: () => {
      process.kill('it was looked at');
      return process.ended;
    },
  };
}

async function exportsOf(process: PluginProcess): Promise<PluginModule> {
  const report = await process.ask({ k: 'load' }, 'loaded');
  const factory = async (config: unknown) => standIn((await process.ask({ k: 'make', config }, 'made')).plugin);
  const plugin = report.plugin.is === 'function' ? factory : standIn(report.plugin);
  if (isDefinition(plugin)) {
    throw new PluginProblem(
      'has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own',
    );
  }
  const configSchema = schemaOf(report.configSchema, 'configSchema', process);
  return { plugin, configSchema, keys: schemaOf(report.keys, 'keys', process) };
}

function schemaOf(packed: PackedSchema, name: string, process: PluginProcess): unknown {
  if (packed.is === 'problem')
    throw new PluginProblem(`its "${name}" cannot be carried to the service: it ${packed.problem}`);
  if (packed.is === 'schema') return unpackSchema(packed.packed);
  if (packed.is === 'absent') return undefined;
  // What it makes of the block is made again by each process, which alone can have it.
  return {
    parse: async (value: unknown) => {
      await process.ask({ k: 'parse', value }, 'parsed');
      return value;
    },
  };
}

function hostOf(made: Made, { name }: SimplePlugin, config: unknown, { log, meters, budget }: Services): PluginHost {
  return new PluginHost({
    ...made,
    config,
    budget: budget === 'none' ? START_TIMEOUT_MS : budget,
    patience: START_TIMEOUT_MS,
    line: (text) => log.info(`plugin "${name}": ${text}`),
    log: (level, message) => log[level](`plugin "${name}": ${message}`),
    count: counting(meters, name),
  });
}

function behaviourOf(
  host: PluginHost,
  { name, hooks }: SimplePlugin,
  keys: readonly ConfigKey[],
  { endpoints, log, status }: Services,
): Behaviour {
  status.show('breakers', () => [{ name: `plugin "${name}"`, state: host.isReady ? 'up' : 'away' }]);
  const forward = (hook: string) => (context: object) => host.call(hook, context as Members);
  const forwarding = Object.fromEntries(Object.keys(hooks).map((hook) => [hook, forward(hook)]));
  return {
    hooks: hooksWithKeys(forwarding, keys, keyValuesOf(keys, endpoints)),
    start: async () => {
      running.add(host);
      await host.start();
      log.info(`plugin "${name}" runs in a process of its own`);
    },
    stop: async () => {
      await host.stop();
      running.delete(host);
    },
  };
}
