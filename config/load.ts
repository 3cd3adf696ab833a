import { dirname } from 'node:path';
import type { Endpoint } from '../kernel/values.ts';
import { type Definition, errorAt, type Finding, warningAt } from '../plugins-sdk/define.ts';
import { isRecord, lineage } from '../plugins-sdk/schema/path.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { checkNames, namesIn } from './endpoints.ts';
import { ConfigErrors, findingLine, hiding, type LocatedFinding, redactor } from './findings.ts';
import { type Interpolated, interpolate } from './interpolate.ts';
import { withMapFiles } from './map-files.ts';
import { loadPlugins, type PluginDraft } from './plugins/load.ts';
import type { PluginModule } from './plugins/simple-plugin.ts';
import { compose } from './schema/compose.ts';
import { fill } from './variables.ts';
import { askPlugins, checkBy, identify, viewOf } from './view.ts';
import { freeEndpoints, publicVariables, rewrittenNumbers } from './warnings.ts';
import { placeIn, readConfigFile, type Tree } from './yaml.ts';

/** What to load, and from where. */
export interface LoadOptions {
  /** Absolute path of the YAML file. */
  readonly file: string;
  /** Parsed content to use instead of reading the file. */
  readonly tree?: Tree;
  /** Plugins' modules by `source`, to use instead of importing them. */
  readonly modules?: ReadonlyMap<string, PluginModule>;
  /** Called before an operator's plugin is loaded, whose code may block the process. */
  readonly beforePlugin?: (() => void) | undefined;
  /** The variables for `${VAR}`; the real environment overrides those of a file. */
  readonly env: Environment;
  /** Built-in plugins, in the order in which they are registered. */
  readonly builtins: readonly Definition[];
  /** Makes warnings of unset variables, and leaves out endpoints whose ID depends on one. */
  readonly allowUnset?: boolean;
  /** With `allowUnset`, a config path below which an unset variable is still an error. */
  readonly needed?: string;
}

/** An enabled plugin with its settings. */
export interface PluginChoice extends Omit<PluginDraft, 'budget'> {
  /** Milliseconds per request. */
  readonly budget: number | 'none';
  /** The line of the config file that names the plugin. */
  readonly line?: number | undefined;
}

/** A valid config file with its plugins and endpoints. */
export interface LoadedConfig {
  /** Absolute path of the file. */
  readonly file: string;
  /** Resolves a path that is relative to the file. */
  readonly path: (relative: string) => string;
  /** The validated content, frozen, with variables replaced and no defaults filled in. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The endpoints in the order of the file. */
  readonly endpoints: readonly Endpoint[];
  /** The canonical JSON that was hashed to each endpoint's ID. */
  readonly explained: readonly { readonly endpoint: Endpoint; readonly text: string }[];
  /** The enabled plugins: built-ins in their order, then operators' in the order of the file. */
  readonly plugins: readonly PluginChoice[];
  readonly warnings: readonly LocatedFinding[];
  /** Masks the values of variables in the text of an error. */
  readonly hide: (text: string) => string;
}

/**
 * Loads a config file in two passes. The first imports the plugins that `settings.plugins` names. The second validates the whole
 * file against the schema of all plugins together, has the plugins check it, and derives the endpoint IDs.
 *
 * @throws ConfigErrors with all faults, in the order of the file.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { file, tree = await readConfigFile(file) } = options;
  const source = await withMapFiles(interpolate(tree, options.env), dirname(file));
  const redact = redactor(source.values);
  const plugins = await loadPlugins({ ...options, ...source, redact });
  const { schema, findings: collisions } = compose(plugins.definitions);
  const view = viewOf(source, schema, new Set(plugins.definitions.flatMap(({ keys = [] }) => keys)), dirname(file));
  const { explained, findings: unidentified, uncertain } = identify(plugins.definitions, view);
  const endpoints = explained.map(({ endpoint }) => endpoint);
  const asked = askPlugins(plugins.choices, view, endpoints, redact);
  const findings = [
    ...source.findings,
    ...unsetVariables(source, options.allowUnset ? options.needed : ''),
    ...plugins.findings,
    ...collisions,
    ...view.findings,
    ...checkNames(view.config, view.isDoubtful),
    ...checkBy(plugins.definitions, view, uncertain, redact),
    ...asked.findings,
    ...unidentified,
    ...freeEndpoints(view.context.endpoints),
    ...publicVariables(source, view.config),
    ...rewrittenNumbers(source),
  ];
  const hide = hiding(source.values);
  const ordered = located([...findings, ...emptyVariables(source, findings)], tree, hide);
  if (ordered.some(({ level }) => level === 'error')) throw new ConfigErrors(ordered);
  return {
    file,
    path: view.context.path,
    config: view.config,
    explained,
    endpoints,
    plugins: asked.choices.map((choice) => ({
      ...choice,
      line: choice.path === undefined ? undefined : placeIn(tree, choice.path).line,
    })),
    warnings: ordered,
    hide,
  };
}

/**
 * Reads the `settings` of a file, with variables replaced. The file may be wrong elsewhere, and no plugin is loaded.
 * @param builtins plugins whose settings are converted to the types of their schemas.
 * @throws ConfigErrors for a file that cannot be read or is not YAML.
 */
export async function readSettings(file: string, env: Environment, builtins: readonly Definition[] = []) {
  const { settings } = fill(interpolate(await readConfigFile(file), env), compose(builtins).schema);
  return isRecord(settings) ? settings : {};
}

/** Sorts findings in the order of the file, drops duplicates, adds places (`prices/eth, line 12`), masks values of variables. */
function located(findings: readonly Finding[], tree: Tree, hide: (text: string) => string): LocatedFinding[] {
  const names = namesIn(tree);
  const unique = new Map(findings.map((finding) => [`${finding.level} ${findingLine(finding)}`, finding]));
  const placed = [...unique.values()].map(({ level, path, message }) => {
    const { offset, line } = placeIn(tree, path);
    const name = [...lineage(path)].flatMap((each) => names.get(each) ?? []).reverse();
    const where = [name.join('/'), line === undefined ? '' : `line ${line}`].filter((part) => part !== '').join(', ');
    return { offset, finding: { level, path, message: hide(message), ...(where && { where }) } };
  });
  return placed.sort((a, b) => a.offset - b.offset).map(({ finding }) => finding);
}

/** Reports unset variables. @param needed the prefix of paths at which one is an error; without it all are warnings. */
function unsetVariables({ references }: Interpolated, needed: string | undefined): Finding[] {
  return [...references].flatMap(([path, { unset }]) => {
    const at = needed !== undefined && path.startsWith(needed) ? errorAt : warningAt;
    return unset.map((name) => at(path, `the variable ${name} is not set`));
  });
}

/**
 * Reports empty variables, mostly from a line `NAME=` that was not filled in. One is an error if the value at its path is wrong,
 * so that its cause is shown, and a warning otherwise.
 */
function emptyVariables({ references }: Interpolated, findings: readonly Finding[]): Finding[] {
  const wrong = new Set(findings.filter(({ level }) => level === 'error').map(({ path }) => path));
  return [...references].flatMap(([path, { empty }]) => {
    const at = wrong.has(path) ? errorAt : warningAt;
    return empty.map((name) => at(path, `the variable ${name} is empty`));
  });
}
