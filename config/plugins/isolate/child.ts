import { Socket } from 'node:net';
import { errorForLog } from '../../../kernel/refusal.ts';
import { clipped } from '../../../lib/text.ts';
import { PluginProblem } from '../plugin-problem.ts';
import { exportsOf, isDefinition, isFactory, NO_DEFAULT, type PluginModule, simplePlugin } from '../simple-plugin.ts';
import { Call, type Called, report } from './child-call.ts';
import { lock } from './lock.ts';
import { LONGEST_TEXT, lineSplitter, ORDERS, type Order, type Shape, type Thrown } from './protocol.ts';

// Captured before the plugin is loaded, since it may replace them.
const { stringify, parse } = JSON;
const { create } = Object;
const exit = process.exit.bind(process);
const later = setImmediate;

const SETUP =
  'has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own';
const ADDON = 'uses a native addon and cannot be isolated: the process of an isolated plugin may load none';

/** Runs the process of an isolated plugin. @param load evaluates the plugin's module. */
export function run(load: () => Promise<unknown>): void {
  lock();
  process.on('unhandledRejection', (error) => {
    process.stderr.write(`unhandled rejection, of a promise that nobody awaits: ${errorForLog(error)}\n`);
  });
  const life = new Life(load);
  const split = lineSplitter();
  const orders = new Socket({ fd: ORDERS }).setEncoding('utf8');
  for (const event of ['end', 'error', 'close']) orders.on(event, () => exit(0));
  orders.on('data', (text: string) => {
    // The microtasks of a call run before the next call begins: if they never end, that one has not begun.
    for (const line of split(text)) later(() => void life.take(parse(line)));
  });
}

class Life {
  readonly #load: () => Promise<unknown>;
  /** The calls under way, by their numbers. */
  readonly #calls: Record<number, Call> = create(null);
  #module: PluginModule = { plugin: undefined, configSchema: undefined, keys: undefined };
  #hooks: Readonly<Record<string, (context: object) => unknown>> = {};

  constructor(load: () => Promise<unknown>) {
    this.#load = load;
  }

  async take(order: Order): Promise<void> {
    const { i } = order;
    try {
      if (order.do === 'abort') Call.abort(this.#calls[i]);
      else if (order.do === 'call') await this.#call(order);
      else report(i, `"ok":${stringify((await this.#prepare(order)) ?? null)}`);
    } catch (error) {
      report(i, `"threw":${thrown(error)}`);
    }
  }

  async #prepare(order: Order): Promise<unknown> {
    if (order.do === 'load') return await this.#open();
    if (order.do === 'parse') await this.#parse(order.config);
    return order.do === 'make' ? await this.#make(order.config) : undefined;
  }

  async #open(): Promise<Shape> {
    this.#module = exportsOf(await this.#load());
    const { plugin, configSchema, keys } = this.#module;
    if (plugin === undefined) throw new PluginProblem(NO_DEFAULT);
    if (isDefinition(plugin)) throw new PluginProblem(SETUP);
    const shape = isFactory(plugin) ? {} : { plugin: shapeOf(plugin, 'the default export') };
    const parses = typeof Object(configSchema).parse === 'function';
    return {
      ...shape,
      parses,
      configSchema: parses ? undefined : carried(configSchema, 'configSchema'),
      keys: carried(keys, 'keys'),
    };
  }

  async #parse(config: unknown): Promise<unknown> {
    const { parse: own } = Object(this.#module.configSchema) as { parse?: unknown };
    return typeof own === 'function' ? await own.call(this.#module.configSchema, config) : config;
  }

  async #make(config: unknown): Promise<Shape['plugin']> {
    const { plugin } = this.#module;
    const made = isFactory(plugin) ? await plugin(await this.#parse(config)) : plugin;
    if (isDefinition(made)) throw new PluginProblem(SETUP);
    const shape = shapeOf(made, 'what its factory returns');
    this.#hooks = Object(made).hooks;
    return shape;
  }

  async #call(order: Called): Promise<void> {
    const { i, hook } = order;
    report(i, '"begins":true');
    const call = new Call(order);
    this.#calls[i] = call;
    try {
      report(i, Call.outcome(call, await this.#hooks[hook]?.(call)));
    } finally {
      delete this.#calls[i];
    }
  }
}

function shapeOf(value: unknown, what: string): Shape['plugin'] {
  const { name, hooks, credentials } = simplePlugin(value, what);
  return { name, hooks: Object.keys(hooks), ...(credentials && { credentials }) };
}

/** Returns a schema as JSON carries it. @throws PluginProblem for one that JSON would change */
function carried(schema: unknown, name: string): unknown {
  const text = stringify(schema, (_, value: unknown) => {
    if (typeof value === 'function')
      throw new PluginProblem(`its "${name}" cannot be carried to the service: it has a function`);
    return value;
  });
  return text === undefined ? undefined : parse(text);
}

/** Returns the JSON of a thrown value, which may itself throw when it is read. */
function thrown(error: unknown): string {
  const stack = clipped(errorForLog(error), LONGEST_TEXT);
  const message = clipped(errorForLog(error, 'message'), LONGEST_TEXT);
  try {
    const { code, issues } = Object(error);
    const isAddon = code === 'ERR_DLOPEN_DISABLED';
    const problem = isAddon || error instanceof PluginProblem;
    return stringify({ problem, message: isAddon ? ADDON : message, stack, issues } satisfies Thrown);
  } catch {
    return stringify({ problem: false, message, stack } satisfies Thrown);
  }
}
