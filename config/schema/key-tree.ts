import { type TProperties, type TSchema, Type } from 'typebox';
import { type Definition, errorAt, type Finding } from '../../plugins-sdk/define.ts';
import { close, closedObject } from '../../plugins-sdk/schema/close.ts';
import { lineage } from '../../plugins-sdk/schema/path.ts';

/** Records which plugin owns what. A second claim to the same thing is a finding. */
export class Claims {
  readonly findings: Finding[] = [];
  readonly #owners = new Map<string, string>();

  /** Claims a thing for an owner. @returns whether it was free. */
  claim(what: string, owner: string): boolean {
    const other = this.#owners.get(what);
    if (other === undefined) this.#owners.set(what, owner);
    else this.findings.push(errorAt('settings.plugins', `${owner} cannot own the ${what}: it belongs to ${other}`));
    return other === undefined;
  }

  /** Claims a config key; keys above and inside it must be free, too. @param label returns the name of a config key's claim. */
  claimKey(path: string, owner: string, label: (path: string) => string): boolean {
    const above = [...lineage(path)].map(label).find((each) => this.#owners.has(each));
    const inside = [...this.#owners.keys()].find((each) => each.startsWith(`${label(path)}.`));
    return this.claim(above ?? inside ?? label(path), owner);
  }
}

type Level = 'root' | 'server' | 'settings' | 'api' | 'endpoint';

/** The keys of a mapping. A dot in a key's path makes an inner mapping, which is optional. */
type KeyTree = Map<string, TSchema | KeyTree>;

/** The keys of the config file itself, which no plugin can own. */
const FRAME = [
  ...['version', 'server', 'settings', 'apis', 'settings.plugins', 'settings.state', 'api.name', 'api.auth'],
  ...['api.endpoints', 'endpoint.name', 'endpoint.auth', 'endpoint.mode', 'endpoint.description'],
];

/** Returns a function that returns the schemas of the keys that plugins own at a level. */
export function ownedKeys(definitions: readonly Definition[], claims: Claims): (level: Level) => TProperties {
  const levels: KeyTree = new Map();
  for (const path of FRAME) claims.claim(`config key ${path}`, 'the config file itself');
  for (const { name, keys = [] } of definitions)
    for (const { level, path, schema } of keys)
      for (const each of level === 'apiOrEndpoint' ? (['api', 'endpoint'] as const) : [level]) {
        const label = (inner: string) => `config key ${each === 'root' ? inner : `${each}.${inner}`}`;
        if (!claims.claimKey(path, `plugin "${name}"`, label)) continue;
        // Keys for APIs alone or endpoints alone may be required, as declared. All others are optional.
        const isDeclared = level === 'api' || level === 'endpoint';
        insert(levels, [each, ...path.split('.')], isDeclared ? close(schema) : Type.Optional(close(schema)));
      }
  return (level) => {
    const tree = levels.get(level);
    return tree instanceof Map ? membersOf(tree) : {};
  };
}

function insert(tree: KeyTree, [key = '', ...rest]: readonly string[], schema: TSchema): void {
  const branch = tree.get(key);
  const inner: KeyTree = branch instanceof Map ? branch : new Map();
  tree.set(key, rest.length === 0 ? schema : inner);
  if (rest.length > 0) insert(inner, rest, schema);
}

/** Returns the schemas of a tree's members; inner mappings come last. */
function membersOf(tree: KeyTree): TProperties {
  const members = [...tree].toSorted(([, a], [, b]) => Number(a instanceof Map) - Number(b instanceof Map));
  return Object.fromEntries(
    members.map(([key, inner]) => [key, inner instanceof Map ? Type.Optional(closedObject(membersOf(inner))) : inner]),
  );
}
