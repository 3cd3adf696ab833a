import { Check } from 'typebox/value';
import { hint } from '../../lib/text/suggest.ts';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Definition, Finding, SimplePlugin } from '../../plugins-sdk/define.ts';
import { convert } from '../../plugins-sdk/schema/convert.ts';
import { type Block, isConfigSchema, validateOwn } from '../../plugins-sdk/schema/own-config.ts';
import { childPath } from '../../plugins-sdk/schema/path.ts';
import type { Services } from '../../plugins-sdk/services.ts';
import { errorAt, warningAt } from '../findings.ts';
import { type PluginEntry, PluginEntrySchema } from '../schema/plugin-entry.ts';
import { hasDoubt, leafOf } from '../variables.ts';
import { checkDefinition, isDefinition, refuseIgnored, signingWarning, simplePlugin } from './check-definition.ts';
import type { LoadedPlugins, PluginChoice, PluginDraft, PluginRequest } from './choice.ts';
import { hooksWithKeys, keyValuesOf, simpleKeys } from './endpoint-keys.ts';
import { importPlugin } from './import.ts';
import { type IsolatedPlugin, isolatePlugin } from './isolate/load.ts';
import { isFactory, type PluginModule } from './module-exports.ts';
import { notReadyAfter, PluginProblem } from './plugin-problem.ts';
import { isPackage, moduleUrl } from './source.ts';

export type { PluginChoice };

const DEFAULT_BUDGET_MS = 1000;
const PREFIX = 'builtin:';
const ROOT = 'settings.plugins';
const FULL_FACTORY =
  'its factory returns a plugin with "setup": export that plugin itself, with "configSchema" in it, and "setup" gets the config as its second argument';

function trusting(name: string): string {
  return `${name}: a package that runs inside the service, where it can read the key; "isolate: true" gives a plugin without "setup" a process of its own`;
}

/** Imports, checks and configures what `settings.plugins` names. Entries of a wrong shape are left for the schema to report. */
export async function loadPlugins(request: PluginRequest): Promise<LoadedPlugins> {
  const loading = new Loading(request);
  const entries: readonly unknown[] = Array.isArray(request.entries) ? request.entries : [];
  for (const [index, entry] of entries.entries()) {
    const path = childPath(ROOT, index);
    const typed = convert(PluginEntrySchema, entry, path, leafOf(request));
    const usable = Check(PluginEntrySchema, typed) && !request.references.get(`${path}.source`)?.doubtful;
    if (usable) await loading.add(typed, path);
  }
  return loading.finish();
}

class Loading {
  readonly #request: PluginRequest;
  readonly #findings: Finding[] = [];
  readonly #builtins = new Map<string, { readonly entry: PluginEntry; readonly path: string }>();
  readonly #operators: PluginDraft[] = [];
  readonly #definitions: Definition[] = [];
  /** Where each operator's plugin is configured, by name. */
  readonly #names = new Map<string, string>();

  constructor(request: PluginRequest) {
    this.#request = request;
  }

  async add(entry: PluginEntry, path: string): Promise<void> {
    if (entry.source.startsWith(PREFIX)) this.#addBuiltin(entry, path);
    else await this.#addOperator(entry, path);
  }

  async finish(): Promise<LoadedPlugins> {
    const enabled = this.#request.builtins.filter(({ name }) => this.#builtins.get(name)?.entry.enabled !== false);
    const builtins: PluginDraft[] = [];
    for (const definition of enabled) builtins.push(await this.#configure(definition));
    for (const { name } of enabled) {
      const path = this.#names.get(name);
      if (path !== undefined) this.#findings.push(errorAt(path, `the name "${name}" is that of a built-in plugin`));
    }
    return {
      choices: [...builtins, ...this.#operators],
      definitions: [...enabled, ...this.#definitions],
      findings: this.#findings,
    };
  }

  #addBuiltin(entry: PluginEntry, path: string): void {
    const name = entry.source.slice(PREFIX.length);
    const known = this.#request.builtins.map((builtin) => builtin.name);
    const definition = this.#request.builtins.find((builtin) => builtin.name === name);
    if (definition === undefined) {
      this.#fail(`${path}.source`, `unknown built-in plugin "${name}"${hint(name, known, 'built-in plugins')}`);
    } else if (this.#builtins.has(name)) {
      this.#fail(`${path}.source`, `the built-in plugin "${name}" is configured twice`);
    } else if (entry.enabled === false && definition.required) {
      this.#fail(`${path}.enabled`, `the built-in plugin "${name}" cannot be left out`);
    } else if (entry.isolate) {
      this.#fail(`${path}.isolate`, 'a built-in plugin cannot be isolated: it works inside the service');
    } else {
      this.#builtins.set(name, { entry, path });
    }
  }

  async #configure(definition: Definition): Promise<PluginDraft> {
    const { entry, path = ROOT } = this.#builtins.get(definition.name) ?? {};
    const config = await this.#ownConfig(
      definition.configSchema,
      entry?.config,
      `${path}.config`,
      `builtin "${definition.name}"`,
    );
    return {
      definition,
      budget: entry?.timeout ?? definition.budget ?? DEFAULT_BUDGET_MS,
      config: config?.value,
      source: `${PREFIX}${definition.name}`,
      operator: false,
    };
  }

  async #addOperator(entry: PluginEntry, path: string): Promise<void> {
    if (entry.enabled !== undefined) {
      this.#fail(`${path}.enabled`, 'unknown key, only built-in plugins can be switched off: leave the entry out');
    }
    try {
      const made = await this.#make(entry, path);
      if (made === undefined) return;
      const { definition, config } = made;
      const isolated = Boolean(entry.isolate);
      this.#remember(definition.name, path);
      if (!isolated && isPackage(entry.source, this.#request.configFile))
        this.#findings.push(warningAt(path, trusting(definition.name)));
      const budget = entry.timeout ?? definition.budget ?? DEFAULT_BUDGET_MS;
      const { source } = entry;
      this.#operators.push({ definition, budget, config, source, path, operator: true, isolated });
    } catch (error) {
      const what = error instanceof PluginProblem ? error.message : `cannot be loaded: ${this.#request.redact(error)}`;
      this.#fail(`${path}.source`, `plugin "${entry.source}": ${what}`);
    }
  }

  /** @throws PluginProblem, and what the plugin's own code throws. */
  async #make(entry: PluginEntry, path: string): Promise<Made | undefined> {
    const { configFile, modules, patience } = this.#request;
    const module = modules?.get(entry.source);
    if (module !== undefined) return this.#makeOf(module, entry, path);
    const url = moduleUrl(entry.source, configFile);
    const late = notReadyAfter(patience);
    if (!entry.isolate) return this.#makeOf(await withTimeout(patience, importPlugin(url), late), entry, path);
    const isolated = await isolatePlugin(url, entry.isolate);
    try {
      return await this.#makeOf(await withTimeout(patience, isolated.exports(), late), entry, path, isolated);
    } finally {
      await isolated.close();
    }
  }

  async #makeOf(
    { plugin, configSchema, keys: exported }: PluginModule,
    entry: PluginEntry,
    path: string,
    isolated?: IsolatedPlugin,
  ): Promise<Made | undefined> {
    const at = `${path}.config`;
    if (isDefinition(plugin)) {
      checkDefinition(plugin);
      refuseIgnored({ configSchema, keys: exported }, plugin);
      this.#definitions.push(plugin);
      const own = await this.#ownConfig(plugin.configSchema, entry.config, at);
      return own && { definition: plugin, config: own.value };
    }
    const simple = isFactory(plugin) ? undefined : simplePlugin(plugin, 'the default export');
    const keys = simpleKeys(exported);
    this.#definitions.push({ name: simple?.name ?? entry.source, keys, setup: () => ({}) });
    const own = await this.#ownConfig(configSchema, entry.config, at, undefined, simple === undefined);
    if (own === undefined) return undefined;
    const made = isFactory(plugin) ? await this.#call(plugin, own.value, at) : simple;
    if (made === undefined) return undefined;
    this.#warn(made, path);
    const { name, hooks, credentials = [] } = made;
    const here = ({ endpoints }: Services) => ({ hooks: hooksWithKeys(hooks, keys, keyValuesOf(keys, endpoints)) });
    const setup = isolated?.behaviour(made, keys, own.value) ?? here;
    return { definition: { name, keys, credentials, setup }, config: own.value };
  }

  /** Nothing when it would have to be called with stand-ins. */
  async #call(factory: (config: unknown) => unknown, config: unknown, path: string): Promise<SimplePlugin | undefined> {
    const { patience, references } = this.#request;
    if (hasDoubt(references, path)) {
      this.#findings.push(warningAt(path, 'the plugin is not loaded: its config has variables that are not set'));
      return undefined;
    }
    const made = await withTimeout(patience, Promise.resolve(factory(config)), notReadyAfter(patience));
    if (isDefinition(made)) throw new PluginProblem(FULL_FACTORY);
    return simplePlugin(made, 'what its factory returns');
  }

  /** @returns nothing when there is something wrong, which has been noted. */
  async #ownConfig(
    schema: unknown,
    given: unknown,
    path: string,
    label = 'the plugin',
    takesAny = false,
  ): Promise<{ readonly value: unknown } | undefined> {
    if (schema === undefined) {
      if (given === undefined || takesAny) return { value: takesAny ? structuredClone(given ?? {}) : undefined };
      this.#fail(path, `${label} takes no config`);
      return undefined;
    }
    if (!isConfigSchema(schema))
      throw new PluginProblem('its configSchema is neither a schema nor anything with parse()');
    const { references, redact } = this.#request;
    const doubtful = hasDoubt(references, path);
    const block: Block = { value: given, path, leaf: leafOf(this.#request), redact, doubtful };
    const { value, findings } = await validateOwn(schema, block);
    const certain = findings.filter((finding) => !references.get(finding.path)?.doubtful);
    this.#findings.push(...certain);
    return certain.some(({ level }) => level === 'error') ? undefined : { value };
  }

  #remember(name: string, path: string): void {
    const other = this.#names.get(name);
    if (other === undefined) this.#names.set(name, path);
    else this.#fail(path, `the plugin of ${other} has the name "${name}" too`);
  }

  #warn({ name, hooks, credentials = [] }: SimplePlugin, path: string): void {
    const warning = signingWarning(name, hooks);
    if (warning !== undefined) this.#findings.push(warningAt(path, warning));
    if (credentials.length > 0)
      this.#findings.push(warningAt(path, `${name}: sees the credentials in ${credentials.join(', ')}`));
  }

  #fail(path: string, message: string): void {
    this.#findings.push(errorAt(path, message));
  }
}

interface Made {
  readonly definition: Definition;
  readonly config: unknown;
}
