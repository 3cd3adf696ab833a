import { dirname } from 'node:path';
import type { Definition, EndpointDraft, Finding } from '../plugins-sdk/define.ts';
import type { Endpoint } from '../plugins-sdk/kernel.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { shortDurations } from '../plugins-sdk/schema/short-durations.ts';
import { runChecks } from './checks.ts';
import { checkNames } from './endpoints.ts';
import { ConfigErrors, errorAt, inFileOrder, type LocatedFinding, warningAt } from './findings.ts';
import { checkIdentityOwners, endpointId } from './identity.ts';
import { type Interpolated, interpolate, type Variables } from './interpolate.ts';
import type { PluginDraft } from './plugins/choice.ts';
import { loadPlugins, type PluginChoice } from './plugins/load.ts';
import type { PluginModule } from './plugins/module-exports.ts';
import { hiding, type Redact, redactMessage, redactor } from './redact.ts';
import { compose } from './schema/compose.ts';
import { fill } from './variables.ts';
import { type Identified, View } from './view.ts';
import { freeEndpoints, misleadingTexts, publicVariables } from './warnings.ts';
import { lineIn, readConfigFile, type Tree } from './yaml.ts';

export interface LoadOptions {
  /** Absolute path of the YAML file. */
  readonly file: string;
  /** What stands in for the file's content. */
  readonly tree?: Tree;
  /** Modules that stand in for those that these sources name. */
  readonly modules?: ReadonlyMap<string, PluginModule>;
  /** What `${VAR}` may see: the real environment over that of a file. */
  readonly env: Variables;
  /** In the order in which they are registered. */
  readonly builtins: readonly Definition[];
  /** Unset variables become warnings; endpoints whose ID depends on one are left out. */
  readonly allowUnset?: boolean;
  /** With `allowUnset`, a config path below which variables must be set all the same. */
  readonly needed?: string;
  /** Milliseconds that a plugin's module, and then its factory, may take; default 30 seconds. */
  readonly patience?: number;
}

export interface LoadedConfig {
  /** Absolute path of the file. */
  readonly file: string;
  /** Validated, variables replaced, no defaults mixed in; frozen. */
  readonly config: Readonly<Record<string, unknown>>;
  /** In the order of the file. */
  readonly endpoints: readonly Endpoint[];
  /** The canonical JSON that was hashed to each endpoint's ID. */
  readonly explained: readonly { readonly endpoint: Endpoint; readonly text: string }[];
  /** Those that take part: built-ins in their order, then operators' in the order of the file. */
  readonly plugins: readonly PluginChoice[];
  readonly warnings: readonly LocatedFinding[];
  /** Hides the values of variables in the text of an error. */
  readonly hide: (text: string) => string;
}

const PLUGIN_START_TIMEOUT_MS = 30_000;

/**
 * Reads a config file in two passes: what `settings.plugins` names is imported first. Then the whole file is validated
 * against the schema that all plugins make together, checked by them, and the endpoints are identified.
 *
 * @throws ConfigErrors with everything that is wrong, in the order of the file.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const tree = options.tree ?? (await readConfigFile(options.file));
  const source = interpolate(tree, options.env);
  const allowUnset = options.allowUnset === true;
  const redact = redactor(source.values);
  const settings = isRecord(source.value) ? source.value.settings : undefined;
  const plugins = await loadPlugins({
    entries: isRecord(settings) ? settings.plugins : undefined,
    ...source,
    configFile: options.file,
    modules: options.modules,
    builtins: options.builtins,
    redact,
    patience: options.patience ?? PLUGIN_START_TIMEOUT_MS,
  });
  const { schema, findings: collisions } = compose(plugins.definitions);
  const view = new View(source, schema, dirname(options.file));
  const identified = view.identify(plugins.definitions);
  const findings = [
    ...source.findings,
    ...unsetVariables(source, allowUnset ? options.needed : ''),
    ...plugins.findings,
    ...collisions,
    ...contentFindings(view, plugins.definitions, identified, redact),
    ...identified.flatMap(({ finding }) => (finding === undefined ? [] : [finding])),
    ...sameIds(identified),
    ...freeEndpoints(view.context.endpoints),
    ...publicVariables(source.references, view.config),
    ...misleadingTexts(tree),
    ...shortDurations(schema, source.value, ''),
  ];
  const ordered = located([...findings, ...emptyVariables(source, findings)], tree, source);
  if (ordered.some(({ level }) => level === 'error')) throw new ConfigErrors(ordered);
  const { endpoints, ...finished } = finish(identified);
  return {
    file: options.file,
    config: view.config,
    ...finished,
    endpoints,
    plugins: plugins.choices.map((choice) => chosen(choice, tree, [view.config, endpoints])),
    warnings: ordered,
    hide: hiding(source.values),
  };
}

/** @param known by which a budget is computed. */
function chosen(
  { budget, ...choice }: PluginDraft,
  tree: Tree,
  known: readonly [Readonly<Record<string, unknown>>, readonly Endpoint[]],
): PluginChoice {
  const line = choice.path === undefined ? undefined : { line: lineIn(tree, choice.path) };
  return { ...choice, ...line, budget: typeof budget === 'function' ? budget(...known) : budget };
}

/**
 * What stands under `settings` of a file that may be wrong elsewhere, variables replaced; no plugin is loaded.
 * @param builtins whose keys get values of their types.
 * @throws ConfigErrors for a file that is no YAML.
 */
export async function readSettings(
  file: string,
  env: Variables,
  builtins: readonly Definition[] = [],
): Promise<Readonly<Record<string, unknown>>> {
  const { settings } = fill(interpolate(await readConfigFile(file), env), compose(builtins).schema);
  return isRecord(settings) ? settings : {};
}

/** What is wrong with the names and shapes of a config, and what plugins find in it. */
function contentFindings(
  view: View,
  definitions: readonly Definition[],
  identified: readonly Identified[],
  redact: Redact,
): readonly Finding[] {
  return [
    ...checkIdentityOwners(definitions),
    ...view.wrongShapes,
    ...checkNames(view.config, view.isDoubtful),
    ...view.certain(runChecks(definitions, view.context, { sound: view.isSound, redact }), identified),
  ];
}

/** Findings in the order of the file, each with its place, and without the values of variables. */
function located(findings: readonly Finding[], tree: Tree, { values }: Interpolated): LocatedFinding[] {
  return inFileOrder(findings, tree).map((finding) => {
    const where = placeOf(tree, finding.path);
    return { ...finding, message: redactMessage(finding.message, values), ...(where && { where }) };
  });
}

/** `prices/eth, line 12`: what a path means in the file. */
function placeOf(tree: Tree, path: string): string {
  const [, api, endpoint] = /^apis\[(\d+)\](?:\.endpoints\[(\d+)\])?/.exec(path) ?? [];
  const block = api === undefined ? undefined : Reflect.get(Object(tree.apis), api);
  const inner = endpoint === undefined ? undefined : Reflect.get(Object(Object(block).endpoints), endpoint);
  const names = [block, inner].flatMap((each) => (isRecord(each) && typeof each.name === 'string' ? [each.name] : []));
  const line = lineIn(tree, path);
  return [...(names.length > 0 ? [names.join('/')] : []), ...(line === undefined ? [] : [`line ${line}`])].join(', ');
}

/** @param needed the beginning of the paths at which an unset variable is an error; without it none. */
function unsetVariables({ references }: Interpolated, needed: string | undefined): Finding[] {
  return [...references].flatMap(([path, { unset }]) => {
    const at = needed !== undefined && path.startsWith(needed) ? errorAt : warningAt;
    return unset.map((name) => at(path, `the variable ${name} is not set`));
  });
}

/** Mostly a line `NAME=` that was to be filled in. What is wrong with the value beside is told with its cause. */
function emptyVariables({ references }: Interpolated, findings: readonly Finding[]): Finding[] {
  const wrong = new Set(findings.filter(({ level }) => level === 'error').map(({ path }) => path));
  return [...references].flatMap(([path, { empty }]) => {
    const at = wrong.has(path) ? errorAt : warningAt;
    return empty.map((name) => at(path, `the variable ${name} is empty`));
  });
}

function sameIds(identified: readonly Identified[]): Finding[] {
  const seen = new Map<string, EndpointDraft>();
  return identified.flatMap(({ draft, text }) => {
    if (text === undefined) return [];
    const other = seen.get(text);
    if (other === undefined) {
      seen.set(text, draft);
      return [];
    }
    const names = `"${draft.api}/${draft.name}" and "${other.api}/${other.name}" (${other.path})`;
    return [
      errorAt(
        draft.path,
        `${names} have the same endpoint ID: they are the same request. To have both, give one a parameter that the upstream ignores, such as {name: via, fixed: stream}`,
      ),
    ];
  });
}

function finish(identified: readonly Identified[]): Pick<LoadedConfig, 'endpoints' | 'explained'> {
  const explained = identified.flatMap(({ draft: { path: _, ...rest }, text }) => {
    return text === undefined ? [] : [{ endpoint: Object.freeze({ ...rest, id: endpointId(text) }), text }];
  });
  return { endpoints: explained.map(({ endpoint }) => endpoint), explained };
}
