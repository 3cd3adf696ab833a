import type { ConfigKey } from '../../../plugins-sdk/config-key.ts';
import type { Behaviour, SimplePlugin } from '../../../plugins-sdk/define.ts';
import type { Services } from '../../../plugins-sdk/services.ts';
import { hooksWithKeys } from '../endpoint-keys.ts';
import type { PluginModule } from '../simple-plugin.ts';
import { bundlePlugin } from './bundle.ts';
import { type HookContext, PluginHost } from './host.ts';
import { PluginProcess } from './process.ts';
import type { PluginShape, Shape } from './protocol.ts';

/** MiB of memory that a plugin's process may take by default. */
const DEFAULT_MEMORY_MIB = 128;

/** The value of the config key `isolate`. */
export type Isolation = true | { readonly memory: number };

/** A plugin whose module was evaluated in another process. This process knows only the plugin's shape. */
export type IsolatedPlugin = Awaited<ReturnType<typeof isolatePlugin>>;

/** The running plugins of all generations of the config. */
const running = new Set<PluginHost>();

/** Starts a process to inspect a plugin; the caller closes it. @throws PluginProblem */
export async function isolatePlugin(url: string, isolation: Isolation) {
  const made = { code: await bundlePlugin(url), memory: isolation === true ? DEFAULT_MEMORY_MIB : isolation.memory };
  // Output during the inspection is dropped: the plugin writes it again when it runs.
  const looked = new PluginProcess({ ...made, line: () => undefined });
  return {
    /** Returns stand-ins for the module's exports, which ask the other process. @throws the module's error, and PluginProblem */
    exports: () => standInExports(looked),
    /** Returns the plugin's `setup`. Its process starts and stops with the service. */
    behaviour: (plugin: SimplePlugin, keys: readonly ConfigKey[], config: unknown) => (services: Services) =>
      behaviourOf(made, plugin, keys, config, services),
    /** Ends the process in which the plugin was inspected. */
    close: () => {
      looked.kill('it was looked at');
      return looked.ended;
    },
  };
}

async function standInExports(looked: PluginProcess): Promise<PluginModule> {
  const shape = (await looked.do({ do: 'load' })) as Shape;
  const factory = async (config: unknown) => standIn((await looked.do({ do: 'make', config })) as PluginShape);
  // The parsed config cannot leave the plugin's process, so each process parses it again.
  const parser = { parse: (config: unknown) => looked.do({ do: 'parse', config }).then(() => config) };
  const configSchema = shape.parses ? parser : shape.configSchema;
  return { plugin: shape.plugin ? standIn(shape.plugin) : factory, configSchema, keys: shape.keys };
}

function standIn({ name, hooks, credentials }: PluginShape): object {
  const none = () => undefined;
  return { name, hooks: Object.fromEntries(hooks.map((hook) => [hook, none])), ...(credentials && { credentials }) };
}

function behaviourOf(
  made: { readonly code: string; readonly memory: number },
  { name, hooks }: SimplePlugin,
  keys: readonly ConfigKey[],
  config: unknown,
  { log, meters, status, budget }: Services,
): Behaviour {
  const labels = ['plugin'] as const;
  const counters = {
    calls: meters.counter({ name: 'isolated_calls_total', help: 'Calls of isolated plugins', labels }),
    restarts: meters.counter({
      name: 'isolated_restarts_total',
      help: 'Processes of isolated plugins that were started after the start',
      labels,
      initial: [{ plugin: name }],
    }),
  };
  const help = 'Resident memory of all processes of isolated plugins';
  meters.gauge({ name: 'isolated_resident_memory_bytes', help }, () =>
    [...running].reduce((sum, { resident }) => sum + resident, 0),
  );
  const host = new PluginHost({
    ...made,
    config,
    // A plugin without `setup` always has one.
    budget: Number(budget),
    line: (text) => log.info(`plugin "${name}": ${text}`),
    log: (level, message) => log[level](`plugin "${name}": ${message}`),
    count: (what) => counters[what]({ plugin: name }, 1),
  });
  status.show('breakers', () => [{ name: `plugin "${name}"`, state: host.isReady ? 'up' : 'away' }]);
  const forwarding = Object.fromEntries(
    Object.keys(hooks).map((hook) => [hook, (context: HookContext) => host.call(hook, context)]),
  );
  return {
    hooks: hooksWithKeys(forwarding, keys),
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
