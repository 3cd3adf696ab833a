import { type TProperties, type TSchema, Type } from 'typebox';
import type { ConfigKey } from '../../plugins-sdk/config-key.ts';
import type { Definition } from '../../plugins-sdk/define.ts';
import { close } from '../../plugins-sdk/schema/close.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import { type Claims, plugin } from './claims.ts';

export type Level = 'root' | 'server' | 'settings' | 'api' | 'endpoint';

export function keyTrees(definitions: readonly Definition[], claims: Claims): Record<Level, KeyTree> {
  const tree = (level: string) =>
    new KeyTree((path) => `config key ${level === '' ? path : `${level}.${path}`}`, claims);
  const trees = {
    root: tree(''),
    server: tree('server'),
    settings: tree('settings'),
    api: tree('api'),
    endpoint: tree('endpoint'),
  };
  const frame: readonly [Level, string][] = [
    ...['version', 'server', 'settings', 'apis'].map((path): [Level, string] => ['root', path]),
    ...['plugins', 'state'].map((path): [Level, string] => ['settings', path]),
    ...['name', 'auth', 'endpoints'].map((path): [Level, string] => ['api', path]),
    ...['name', 'auth', 'mode', 'description'].map((path): [Level, string] => ['endpoint', path]),
  ];
  for (const [level, path] of frame) trees[level].reserve(path);
  for (const definition of definitions) {
    for (const key of definition.keys ?? []) {
      for (const level of levelsOf(key)) trees[level].add(key, plugin(definition));
    }
  }
  return trees;
}

function levelsOf({ level }: ConfigKey): readonly Level[] {
  return level === 'apiOrEndpoint' ? ['api', 'endpoint'] : [level];
}

/** The keys of one level; dots in a path make mappings, which are optional by themselves. */
export class KeyTree {
  readonly #leaves = new Map<string, TSchema>();
  readonly #branches = new Map<string, KeyTree>();
  readonly #label: (path: string) => string;
  readonly #claims: Claims;

  constructor(label: (path: string) => string, claims: Claims) {
    this.#label = label;
    this.#claims = claims;
  }

  /** Keeps a key of the frame from being owned by a plugin. */
  reserve(path: string): void {
    this.#claims.claim(this.#label(path), 'the config file itself');
  }

  add({ level, path, schema }: ConfigKey, owner: string): void {
    const leaf = level === 'apiOrEndpoint' ? Type.Optional(close(schema)) : close(schema);
    this.#insert(path.split('.'), leaf, owner);
  }

  #insert([key = '', ...rest]: readonly string[], schema: TSchema, owner: string): void {
    const label = this.#label(key);
    const branch = this.#branches.get(key);
    if (rest.length > 0 && this.#claims.isFree(label)) {
      const inner = branch ?? new KeyTree((path) => this.#label(`${key}.${path}`), this.#claims);
      this.#branches.set(key, inner);
      inner.#insert(rest, schema, owner);
    } else if (branch !== undefined) {
      this.#claims.report(`${owner} cannot own the ${label}: another plugin owns keys inside it`);
    } else if (this.#claims.claim(label, owner)) {
      this.#leaves.set(key, schema);
    }
  }

  members(presence: 'optional' | 'as declared'): TProperties {
    const leaves = [...this.#leaves].map(([key, schema]): [string, TSchema] => {
      return [key, presence === 'optional' ? Type.Optional(schema) : schema];
    });
    const branches = [...this.#branches].map(([key, branch]): [string, TSchema] => {
      return [key, Type.Optional(closedObject(branch.members(presence)))];
    });
    return Object.fromEntries([...leaves, ...branches]);
  }
}
