import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import type { Interpolated } from '../interpolate.ts';
import type { Redact } from '../redact.ts';
import type { PluginModule } from './module-exports.ts';

/** A plugin that takes part, and how the configuration wants it. */
export interface PluginChoice extends Omit<PluginDraft, 'budget'> {
  /** Milliseconds per request. */
  readonly budget: number | 'none';
  /** The line of the file at which the configuration names it. */
  readonly line?: number | undefined;
}

/** The same before the whole configuration is known. */
export interface PluginDraft {
  readonly definition: Definition;
  readonly budget: NonNullable<Definition['budget']>;
  /** Its own `config` block, validated. */
  readonly config: unknown;
  /** `builtin:<name>`, or as written in the configuration. */
  readonly source: string;
  /** Where the configuration names it. */
  readonly path?: string;
  readonly operator: boolean;
  /** Whether it runs in a process of its own. */
  readonly isolated?: boolean;
}

export interface PluginRequest extends Pick<Interpolated, 'value' | 'references' | 'bareHex'> {
  /** Absolute path of the config file. */
  readonly file: string;
  /** Modules by source, which are not imported. */
  readonly modules?: ReadonlyMap<string, PluginModule> | undefined;
  readonly builtins: readonly Definition[];
  readonly redact: Redact;
}

export interface LoadedPlugins {
  /** Built-ins in their own order, then operators' in the order of the config. */
  readonly choices: readonly PluginDraft[];
  /** All whose config keys are known, with or without a usable `config` block. */
  readonly definitions: readonly Definition[];
  readonly findings: readonly Finding[];
}
