import type { Definition } from '../../plugins-sdk/define.ts';
import type { Interpolated } from '../interpolate.ts';
import type { Redact } from '../redact.ts';
import type { PluginModule } from './module-exports.ts';

/** An enabled plugin with its settings. */
export interface PluginChoice extends Omit<PluginDraft, 'budget'> {
  /** Milliseconds per request. */
  readonly budget: number | 'none';
  /** The line of the config file that names the plugin. */
  readonly line?: number | undefined;
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
export interface PluginRequest extends Pick<Interpolated, 'value' | 'references' | 'bareHex'> {
  /** Absolute path of the config file. */
  readonly file: string;
  /** Plugins' modules by `source`, to use instead of importing them. */
  readonly modules?: ReadonlyMap<string, PluginModule> | undefined;
  readonly builtins: readonly Definition[];
  readonly redact: Redact;
}
