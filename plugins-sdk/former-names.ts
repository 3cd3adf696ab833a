import { deprecate } from 'node:util';

interface Member {
  readonly former: string;
  readonly present: string;
  readonly warn: () => void;
}

/**
 * Members by the names that they had before, which plugins may use for one release. The first use of each is a
 * `DeprecationWarning` of Node.js that names the present one.
 */
class FormerNames {
  readonly #members: readonly Member[];

  /** @param owner what has the members, for the warning. @param names present names by former ones. */
  constructor(owner: string, names: Readonly<Record<string, string>>) {
    this.#members = Object.entries(names).map(([former, present]) => {
      const text = `"${former}" of ${owner} is called "${present}" now: rename it, since the next release will not know "${former}"`;
      return { former, present, warn: deprecate(() => undefined, text) };
    });
  }

  get former(): readonly string[] {
    return this.#members.map(({ former }) => former);
  }

  /** Lets plugins read the members of a value, or of a class by its prototype, by their former names. @returns the value */
  addTo<T extends object>(value: T): T {
    for (const { former, present, warn } of this.#members) {
      function get(this: object): unknown {
        warn();
        return Reflect.get(this, present);
      }
      Object.defineProperty(value, former, { get });
    }
    return value;
  }

  /** What a plugin made, its members by their present names; the value itself where it has these. */
  present<T extends object>(value: T): T {
    const isFormer = (one: Member) => one.former in value && Reflect.get(value, one.present) === undefined;
    if (!this.#members.some(isFormer)) return value;
    const members = this.#members.map((one) => {
      const { former, present, warn } = one;
      if (isFormer(one)) warn();
      const member: unknown = Reflect.get(value, isFormer(one) ? former : present);
      return [present, typeof member === 'function' ? member.bind(value) : member];
    });
    return { ...value, ...Object.fromEntries(members) };
  }
}

/** Of an endpoint. */
export const endpointNames = new FormerNames('an endpoint', { own: 'block', shared: 'apiBlock' });

/** Of what `setup` gets. */
export const serviceNames = new FormerNames('the services', { shared: 'stateEngine' });

/** Of state in an engine, in memory, or among workers: plugins use it, and engines of theirs make it. */
export const areaNames = new FormerNames('a state area', { swap: 'compareAndSet', take: 'takeTokens' });

/** Of a plugin's definition. */
export const definitionNames = new FormerNames('a plugin', { needsState: 'requiresSharedState' });
