import { Check } from 'typebox/value';
import { DEFAULT_BUDGET_MS } from '../../kernel/charge.ts';
import { hint } from '../../lib/suggest.ts';
import { type Definition, errorAt, type Finding, type SimplePlugin, warningAt } from '../../plugins-sdk/define.ts';
import { convert } from '../../plugins-sdk/schema/convert.ts';
import { type Block, isConfigSchema, validateOwn } from '../../plugins-sdk/schema/own-config.ts';
import { childPath } from '../../plugins-sdk/schema/path.ts';
import { ConfigErrors, type Redact } from '../findings.ts';
import type { Interpolated } from '../interpolate.ts';
import { type PluginEntry, PluginEntrySchema } from '../schema/compose.ts';
import { hasDoubt, leafOf } from '../variables.ts';
import { checkDefinition, signingWarning } from './check-definition.ts';
import { hooksWithKeys, simpleKeys } from './endpoint-keys.ts';
import { importPlugin, resolveSource } from './import.ts';
import { type IsolatedPlugin, isolatePlugin } from './isolate/load.ts';
import { loadedInTime, PluginProblem } from './plugin-problem.ts';
import { isDefinition, isFactory, type PluginModule, simplePlugin } from './simple-plugin.ts';

const PREFIX = 'builtin:';
const ROOT = 'settings.plugins';
/** Matches what Node.js says of CommonJS. It goes on to advise `.cjs`, which no plugin's file may be. */
const COMMON_JS = /^(\w+ is not defined in ES module scope).*/;
const FULL_FACTORY =
  'its factory returns a plugin with "setup": export that plugin itself, with "configSchema" in it, and "setup" gets the config as its second argument';

function ignored(name: string): string {
  return `the export "${name}" is for plugins without "setup": make it a member of the definition`;
}

function trusting(name: string): string {
  return `${name}: a package that runs inside the service, where it can read the key; "isolate: true" gives a plugin without "setup" a process of its own`;
}

/** An enabled plugin before the whole configuration is known. */
export interface PluginDraft {
  readonly definition: Definition;
  readonly budget: NonNullable<Definition['budget']>;
  /** The plugin's own `config` block, validated. */
  readonly config: unknown;
  /** `builtin:<name>`, or as written in the configuration. */
  readonly source: string;
  /** Config path of the plugin's entry, if there is one. */
  readonly path?: string;
  readonly operator: boolean;
  /** Whether the plugin runs in a process of its own. */
  readonly isolated?: boolean;
}

/** What is needed to load the plugins of a config file. */
interface PluginRequest extends Pick<Interpolated, 'value' | 'references' | 'written'> {
  /** Absolute path of the config file. */
  readonly file: string;
  /** Plugins' modules by `source`, to use instead of importing them. */
  readonly modules?: ReadonlyMap<string, PluginModule> | undefined;
  readonly beforePlugin?: (() => void) | undefined;
  readonly builtins: readonly Definition[];
  readonly redact: Redact;
}

/** Imports, checks and configures the plugins in `settings.plugins`. Skips entries of a wrong shape: the schema reports them. */
export async function loadPlugins(request: PluginRequest) {
  const loading = new Loading(request);
  const { plugins } = Object(Object(request.value).settings);
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
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
  /** Entries for built-in plugins, by the name of the plugin. */
  readonly #builtins = new Map<string, { readonly entry: PluginEntry; readonly path: string }>();
  readonly #operators: PluginDraft[] = [];
  readonly #definitions: Definition[] = [];

  constructor(request: PluginRequest) {
    this.#request = request;
  }

  async add(entry: PluginEntry, path: string): Promise<void> {
    if (entry.source.startsWith(PREFIX)) return this.#addBuiltin(entry, path);
    if (entry.enabled !== undefined)
      this.#fail(`${path}.enabled`, 'unknown key, only built-in plugins can be switched off: leave the entry out');
    await this.#addOperator(entry, path).catch((error: unknown) => this.#report(error, entry.source, path));
  }

  /** Reports why a plugin cannot be used. */
  #report(error: unknown, source: string, path: string): void {
    if (error instanceof ConfigErrors) return void this.#findings.push(...error.findings);
    const why = this.#request.redact(error).replace(COMMON_JS, '$1: write "import" and "export default"');
    const what = error instanceof PluginProblem ? error.message : `cannot be loaded: ${why}`;
    this.#fail(`${path}.source`, `plugin "${source}": ${what}`);
  }

  /**
   * @returns built-ins in their own order, then operators' plugins in the order of the config. `definitions` are all whose config
   * keys are known, even if their `config` block is unusable.
   */
  async finish() {
    const enabled = this.#request.builtins.filter(({ name }) => this.#builtins.get(name)?.entry.enabled !== false);
    const builtins: PluginDraft[] = [];
    for (const definition of enabled) builtins.push(await this.#configure(definition));
    const choices = [...builtins, ...this.#operators];
    const owners = new Map<string, string | undefined>();
    for (const { definition, path } of choices) {
      const { name } = definition;
      if (path === undefined || !owners.has(name)) owners.set(name, path);
      else if (owners.get(name) === undefined) this.#fail(path, `the name "${name}" is that of a built-in plugin`);
      else this.#fail(path, `the plugin of ${owners.get(name)} has the name "${name}" too`);
    }
    return { choices, definitions: [...enabled, ...this.#definitions], findings: this.#findings };
  }

  #addBuiltin(entry: PluginEntry, path: string): void {
    const name = entry.source.slice(PREFIX.length);
    const known = this.#request.builtins.map((builtin) => builtin.name);
    const definition = this.#request.builtins.find((builtin) => builtin.name === name);
    if (definition === undefined)
      this.#fail(`${path}.source`, `unknown built-in plugin "${name}"${hint(name, known, 'built-in plugins')}`);
    else if (this.#builtins.has(name))
      this.#fail(`${path}.source`, `the built-in plugin "${name}" is configured twice`);
    else if (entry.enabled === false && definition.required)
      this.#fail(`${path}.enabled`, `the built-in plugin "${name}" cannot be left out`);
    else if (entry.isolate)
      this.#fail(`${path}.isolate`, 'a built-in plugin cannot be isolated: it works inside the service');
    else this.#builtins.set(name, { entry, path });
  }

  async #configure(definition: Definition): Promise<PluginDraft> {
    const { entry, path = ROOT } = this.#builtins.get(definition.name) ?? {};
    const source = `${PREFIX}${definition.name}`;
    const own = this.#ownConfig(definition.configSchema, entry?.config, path);
    const config = await own.catch((error: unknown) => this.#report(error, source, path));
    return { definition, budget: budgetOf(definition, entry), config, source, operator: false };
  }

  /** Adds an operator's plugin. @throws PluginProblem, ConfigErrors, and any error of the plugin's own code. */
  async #addOperator(entry: PluginEntry, path: string): Promise<void> {
    const { file, modules, beforePlugin } = this.#request;
    beforePlugin?.();
    const { source, isolate = false } = entry;
    const known = modules?.get(source);
    const { url, isPackage } = known === undefined ? resolveSource(source, file) : { url: '', isPackage: false };
    const isolated = isolate && known === undefined ? await isolatePlugin(url, isolate) : undefined;
    try {
      const imported = known ?? (isolated === undefined ? importPlugin(url) : isolated.exports());
      const module = await loadedInTime(Promise.resolve(imported));
      const made = isDefinition(module.plugin)
        ? await this.#full(module.plugin, module, entry, path)
        : await this.#simple(module, entry, path, isolated);
      if (!isolate && isPackage) this.#findings.push(warningAt(path, trusting(made.definition.name)));
      const budget = budgetOf(made.definition, entry);
      this.#operators.push({ ...made, budget, source, path, operator: true, isolated: isolate !== false });
    } finally {
      await isolated?.close();
    }
  }

  async #full(definition: Definition, module: PluginModule, entry: PluginEntry, path: string) {
    checkDefinition(definition);
    for (const name of ['configSchema', 'keys'] as const)
      if (module[name] !== undefined && definition[name] === undefined) throw new PluginProblem(ignored(name));
    this.#definitions.push(definition);
    return { definition, config: await this.#ownConfig(definition.configSchema, entry.config, path) };
  }

  async #simple(module: PluginModule, entry: PluginEntry, path: string, isolated: IsolatedPlugin | undefined) {
    const { plugin, configSchema } = module;
    const known = isFactory(plugin) ? undefined : simplePlugin(plugin, 'the default export');
    const keys = simpleKeys(module.keys);
    this.#definitions.push({ name: known?.name ?? entry.source, keys, setup: () => ({}) });
    // A factory without a schema accepts any config.
    const schema = configSchema ?? (isFactory(plugin) ? {} : undefined);
    const config = await this.#ownConfig(schema, entry.config, path);
    const made = isFactory(plugin) ? await this.#call(plugin, config, `${path}.config`) : simplePlugin(plugin, '');
    const { name, hooks, credentials = [] } = made;
    const warning = signingWarning(name, hooks);
    if (warning !== undefined) this.#findings.push(warningAt(path, warning));
    if (credentials.length > 0)
      this.#findings.push(warningAt(path, `${name}: sees the credentials in ${credentials.join(', ')}`));
    const setup = isolated?.behaviour(made, keys, config) ?? (() => ({ hooks: hooksWithKeys(hooks, keys) }));
    return { definition: { name, keys, credentials, setup }, config };
  }

  /** Calls a plugin's factory. @throws ConfigErrors when the config has stand-ins for unset variables. */
  async #call(factory: (config: unknown) => unknown, config: unknown, path: string): Promise<SimplePlugin> {
    if (hasDoubt(this.#request.references, path))
      throw new ConfigErrors([warningAt(path, 'the plugin is not loaded: its config has variables that are not set')]);
    const made = await loadedInTime(Promise.resolve(factory(config)));
    if (isDefinition(made)) throw new PluginProblem(FULL_FACTORY);
    return simplePlugin(made, 'what its factory returns');
  }

  /** Validates a plugin's own `config` block. @param entry path of the plugin's entry. @throws ConfigErrors */
  async #ownConfig(schema: unknown, value: unknown, entry: string): Promise<unknown> {
    const path = `${entry}.config`;
    if (schema === undefined && value === undefined) return undefined;
    if (schema !== undefined && !isConfigSchema(schema))
      throw new PluginProblem('its configSchema is neither a schema nor anything with parse()');
    const { references, redact } = this.#request;
    const block: Block = { value, path, leaf: leafOf(this.#request), redact, doubtful: hasDoubt(references, path) };
    const validated = await loadedInTime(validateOwn(schema, block));
    const certain = validated.findings.filter((finding) => !references.get(finding.path)?.doubtful);
    if (certain.some(({ level }) => level === 'error')) throw new ConfigErrors(certain);
    this.#findings.push(...certain);
    return validated.value;
  }

  #fail(path: string, message: string): void {
    this.#findings.push(errorAt(path, message));
  }
}

function budgetOf({ budget }: Definition, entry?: PluginEntry): PluginDraft['budget'] {
  return entry?.timeout ?? budget ?? DEFAULT_BUDGET_MS;
}
