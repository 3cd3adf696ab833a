import { exportsOf, isClass, NO_DEFAULT, type PluginModule } from '../../module-exports.ts';
import { packSchema } from '../packed-schema.ts';
import type { Order, Sketch } from '../protocol.ts';
import { Calls, type Hook } from './calls.ts';
import { lock } from './lock.ts';
import { errorText, thrown } from './thrown.ts';
import { listen, report } from './wire.ts';

/** Levels of a plugin that are looked at: it, its members, its hooks. */
const LEVELS = 2;

function sketch(value: unknown, levels = LEVELS): Sketch {
  if (typeof value === 'function') return { is: isClass(value) ? 'class' : 'function' };
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return { is: 'plain', value };
  if (typeof value === 'number') return { is: 'plain', value: Number.isFinite(value) ? value : 0 };
  if (Array.isArray(value))
    return { is: 'list', items: levels > 0 ? value.map((item) => sketch(item, levels - 1)) : [] };
  if (typeof value !== 'object') return { is: 'undefined' };
  const keys = levels > 0 ? Object.keys(value) : [];
  // A definition may be an instance of a class.
  if (levels === LEVELS && 'setup' in value && !keys.includes('setup')) keys.push('setup');
  const members = keys.map((key) => [key, sketch(Reflect.get(value, key), levels - 1)] as const);
  return { is: 'object', members: Object.fromEntries(members) };
}

/** The process of an isolated plugin. @param load evaluates the plugin's module. */
export function run(load: () => Promise<unknown>): void {
  lock();
  // In the process of the service it would be logged, too, and nothing else.
  process.on('unhandledRejection', (error) => {
    process.stderr.write(`unhandled rejection, of a promise that nobody awaits: ${errorText(error)}\n`);
  });
  const life = new Life(load);
  listen((order, text) => life.take(order, text));
}

class Life {
  readonly #load: () => Promise<unknown>;
  #module: PluginModule = { plugin: undefined, configSchema: undefined, keys: undefined };
  readonly #calls = new Calls();

  constructor(load: () => Promise<unknown>) {
    this.#load = load;
  }

  take(order: Order, text: (() => string) | undefined): void {
    if (order.k === 'call') this.#calls.add(order, text);
    else if (order.k === 'abort') this.#calls.abort(order.i);
    else if (order.k === 'ping') report({ k: 'pong' });
    else void this.#prepare(order).catch((error: unknown) => report({ k: 'failed', error: thrown(error) }));
  }

  async #prepare(order: Exclude<Order, { readonly i: number } | { readonly k: 'ping' }>): Promise<void> {
    if (order.k === 'load') await this.#open();
    else if (order.k === 'parse') await this.#parse(order.value).then(() => report({ k: 'parsed' }));
    else await this.#make(order.config);
  }

  async #open(): Promise<void> {
    this.#module = exportsOf(await this.#load());
    const { plugin, configSchema, keys } = this.#module;
    if (plugin === undefined) report({ k: 'failed', error: { problem: NO_DEFAULT, message: NO_DEFAULT, stack: '' } });
    else
      report({
        k: 'loaded',
        plugin: sketch(plugin),
        configSchema: packSchema(configSchema, true),
        keys: packSchema(keys, false),
      });
  }

  async #parse(value: unknown): Promise<unknown> {
    const { configSchema } = this.#module;
    if (packSchema(configSchema, true).is !== 'parser') return value;
    return (configSchema as { parse(value: unknown): unknown }).parse(value);
  }

  async #make(config: unknown): Promise<void> {
    const { plugin } = this.#module;
    const isFactory = typeof plugin === 'function';
    const made: unknown = isFactory ? await (plugin as Hook)(await this.#parse(config)) : plugin;
    const { hooks } = Object(made) as { readonly hooks?: unknown };
    this.#calls.use(Object(hooks) as Readonly<Record<string, Hook>>);
    report({ k: 'made', plugin: sketch(made) });
  }
}
