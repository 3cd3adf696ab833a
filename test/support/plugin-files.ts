import { eventually } from './wait.ts';
/** Something that a plugin file of a test wrote down. */
export interface Note {
  readonly topic: string;
  readonly value: unknown;
}

/**
 * What the plugin files of a test write down: they are loaded into this process and call `note(topic, value)`. One test
 * file is one process, so its services share the notes; topics keep them apart.
 */
export const notes = {
  all: [] as Note[],
  /** Values noted under the topic so far. */
  of: (topic: string): unknown[] => notes.all.filter((note) => note.topic === topic).map(({ value }) => value),
  /** Resolves with the values under the topic once there are `count` of them. */
  until: async (topic: string, count = 1): Promise<unknown[]> => {
    const last = () => `${count} notes "${topic}": ${JSON.stringify(notes.all.slice(-5))}`;
    await eventually(() => notes.of(topic).length >= count, last);
    return notes.of(topic);
  },
  add: (topic: string, value?: unknown) => void notes.all.push({ topic, value }),
  clear: () => notes.all.splice(0),
};

Reflect.set(globalThis, 'testNote', notes.add);

/** Source of a plugin file `{name, hooks}`; `hooks` and `before` are code, which may `note`, `sleep(ms)` and `block(ms)`. */
export function pluginFile(name: string, hooks: string, before = ''): string {
  return `${pluginTools}${before}\nexport default { name: ${JSON.stringify(name)}, hooks: { ${hooks} } };\n`;
}

/** The first lines of a plugin file that wants `note`, `sleep(ms)` and `block(ms)`. */
export const pluginTools = `
const note = globalThis.testNote;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => { for (const end = performance.now() + ms; performance.now() < end; ); };
`;

/** Entries of `settings.plugins` and the files for them, out of sources by plugin name. */
export function pluginFiles(sources: Readonly<Record<string, string>>, more: Readonly<Record<string, object>> = {}) {
  const files = Object.fromEntries(Object.entries(sources).map(([name, source]) => [`${name}.mjs`, source]));
  const plugins = Object.keys(sources).map((name) => ({ source: `./${name}.mjs`, ...more[name] }));
  return { files, plugins };
}

type Act = (context: Readonly<Record<string, unknown>>) => unknown;

type Listener = (name: string | undefined, act: Act | undefined, scope: object) => void;

/** Functions by `<plugin> <hook>`; plugins in other processes are told of them, too. */
class Acts extends Map<string, Act> {
  readonly #listeners = new Set<Listener>();

  /** @param scope what the function uses of where it stands, by name: another process has none of it. */
  override set(name: string, act: Act, scope: object = {}): this {
    for (const listener of this.#listeners ?? []) listener(name, act, scope);
    return super.set(name, act);
  }

  override clear(): void {
    for (const listener of this.#listeners) listener(undefined, undefined, {});
    super.clear();
  }

  /** @returns what ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** What the hooks of a {@link puppetFile} do; empty it before each test. */
export const acts = new Acts();

Reflect.set(globalThis, 'testAct', (name: string, context: Readonly<Record<string, unknown>>) =>
  acts.get(name)?.(context),
);

export const HOOKS = [
  'onHttpRequest',
  'onBeforeApiCall',
  'onAfterApiCall',
  'onBeforeSign',
  'onResponseSent',
  'onError',
] as const;
type HookName = (typeof HOOKS)[number];

/** A plugin file whose hooks do what the test has put into {@link acts}. */
export function puppetFile(name: string, hooks: readonly HookName[] = HOOKS): string {
  return pluginFile(name, hooks.map((hook) => `${hook}: (context) => testAct('${name} ${hook}', context)`).join(', '));
}

/** Errors and other things that nobody should throw; whatever of them is text says LEAK. */
export const hostileThrows: Readonly<Record<string, () => unknown>> = {
  'an error': () => new Error('LEAK'),
  'a text': () => 'LEAK',
  undefined: () => undefined,
  null: () => null,
  'a number': () => 0,
  'an empty text': () => '',
  false: () => false,
  'a bigint': () => 1n,
  'a symbol': () => Symbol('LEAK'),
  'a function': () => () => 'LEAK',
  'an object without a prototype': () => Object.create(null),
  'a proxy that throws': () => throwingProxy(),
  'a revoked proxy': revokedProxy,
  'an object whose message throws': () => withGetter('message', () => raise(new Error('LEAK'))),
  'an error whose stack throws': () =>
    Object.defineProperty(new Error('LEAK'), 'stack', { get: () => raise(throwingProxy()) }),
  'an error whose stack is no text': () => Object.defineProperty(new Error('LEAK'), 'stack', { value: { LEAK: 1n } }),
  'an error whose toString throws': () =>
    Object.assign(new Error('LEAK'), { stack: undefined, message: { toString: () => raise('LEAK') } }),
  'what passes for a refusal': () => ({
    [Symbol.for('signed-data-proxy.refusal')]: true,
    status: 200,
    body: { LEAK: 1 },
    message: 'LEAK',
    headers: { LEAK: 'LEAK' },
  }),
};

export function raise(error: unknown): never {
  throw error;
}

/** An object with a member that runs code when it is read. */
export function withGetter(name: string, get: () => unknown): object {
  return Object.defineProperty({}, name, { get, enumerable: true });
}

export function thenable(then: unknown): object {
  return Object.fromEntries([['then', then]]);
}

export function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Every operation on it throws. */
export function throwingProxy(): object {
  const trap = () => raise(new Error('LEAK'));
  const traps = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor', 'set', 'defineProperty'];
  return new Proxy({}, Object.fromEntries(traps.map((name) => [name, trap])));
}
