import { ConfigErrors, errorAt } from '../../config/findings.ts';
import { interpolate, type Variables } from '../../config/interpolate.ts';
import { loadPlugins, type PluginChoice } from '../../config/plugins/load.ts';
import { redactor } from '../../config/redact.ts';
import { compose } from '../../config/schema/compose.ts';
import { PluginEntrySchema } from '../../config/schema/plugin-entry.ts';
import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import { explain } from '../../plugins-sdk/schema/explain.ts';

export interface PluginToLoad {
  /** As `source` names it in a config file that lies in `folder`. */
  readonly source: string;
  readonly folder: string;
  /** As in the config file; nothing for what the entry does not have. */
  readonly timeout: number | undefined;
  readonly config: unknown;
  /** What `${VAR}` may see. */
  readonly env: Variables;
  readonly builtins: readonly Definition[];
  /** Milliseconds that the module, and then its factory, may take. */
  readonly patience: number;
}

const ENTRY = 'settings.plugins[0]';

/**
 * Loads a plugin as the service would if it were the only one in the config file.
 *
 * @throws ConfigErrors with everything that is wrong; paths begin at the entry in `settings.plugins`.
 */
export async function loadPlugin(request: PluginToLoad): Promise<PluginChoice> {
  const { source, folder, timeout, config, env, builtins, patience } = request;
  if (source.startsWith('builtin:')) throw new ConfigErrors([errorAt('', `"${source}" is part of the service`)]);
  const entry = {
    // Only a config file has variables in it.
    source: source.replaceAll('${', () => '$${'),
    ...(timeout === undefined ? {} : { timeout }),
    ...(config === undefined ? {} : { config }),
  };
  const interpolated = interpolate({ settings: { plugins: [entry] } }, env);
  const loaded = await loadPlugins({
    entries: entriesOf(interpolated.value),
    ...interpolated,
    configFile: `${folder}/config.yaml`,
    builtins,
    redact: redactor(interpolated.values),
    patience,
  });
  const unset = [...interpolated.references].flatMap(([path, { unset: names }]) =>
    names.map((name) => errorAt(path, `the variable ${name} is not set`)),
  );
  const findings = [
    ...explain(PluginEntrySchema, entry, ENTRY),
    ...interpolated.findings,
    ...unset,
    ...loaded.findings,
    ...compose(loaded.definitions).findings,
  ];
  const errors = findings.filter(({ level }) => level === 'error').map(fromEntry);
  if (errors.length > 0) throw new ConfigErrors(errors);
  const choice = loaded.choices.find(({ operator }) => operator);
  if (choice === undefined) throw new ConfigErrors([errorAt('', `plugin "${source}": was not loaded`)]);
  const { budget, ...given } = choice;
  return { ...given, budget: typeof budget === 'function' ? budget({}, []) : budget };
}

function entriesOf(value: unknown): unknown {
  const settings: unknown = Reflect.get(Object(value), 'settings');
  return Reflect.get(Object(settings), 'plugins');
}

/** A user of the command has no `settings.plugins` in front of them. */
function fromEntry({ level, path, message }: Finding): Finding {
  const rest = path.startsWith(ENTRY) ? path.slice(ENTRY.length).replace(/^\.(?:source$)?/, '') : path;
  return { level, path: rest, message };
}
