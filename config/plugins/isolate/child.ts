import { Socket } from 'node:net';
import { clipped } from '../../../lib/text/clipped.ts';
import { exportsOf, isFactory, NO_DEFAULT, type PluginModule } from '../module-exports.ts';
import { PluginProblem } from '../plugin-problem.ts';
import { isDefinition, simplePlugin } from '../simple-plugin.ts';
import { Call, type Called, contextOf, done, meantOf, report } from './child-call.ts';
import { lock } from './lock.ts';
import { LONGEST_TEXT, lineSplitter, ORDERS, type Order, type Shape, type Thrown } from './protocol.ts';

type Hook = (context: object) => unknown;

// Taken before the plugin is loaded, which may replace what everybody uses.
const { stringify, parse } = JSON;
const { create } = Object;
const { nextTick } = process;
const exit = process.exit.bind(process);
const microtask = queueMicrotask;
const Later = Promise;

const SETUP =
  'has "setup" and cannot be isolated: what it sets up works inside the service; only the six hooks can be called in a process of their own';
const ADDON = 'uses a native addon and cannot be isolated: the process of an isolated plugin may load none';
/** The process of an isolated plugin. @param load evaluates the plugin's module. */
export function run(load: () => Promise<unknown>): void {
  lock();
  process.on('unhandledRejection', (error) => {
    process.stderr.write(`unhandled rejection, of a promise that nobody awaits: ${textOf(error)}\n`);
  });
  const life = new Life(load);
  const socket = new Socket({ fd: ORDERS });
  for (const event of ['end', 'error', 'close']) socket.on(event, () => exit(0));
  socket.setEncoding('utf8').on(
    'data',
    reader((order) => void life.take(order)),
  );
}

function reader(take: (order: Order) => void): (text: string) => void {
  const split = lineSplitter();
  const read = async (text: string, before: Promise<void> | undefined) => {
    await before;
    try {
      for (const line of split(text)) {
        take(parse(line));
        // What a call does in microtasks comes before the next call begins: it may never give way.
        await new Later<void>((resolve) => microtask(() => nextTick(resolve)));
      }
    } catch {
      exit(1);
    }
  };
  let last: Promise<void> | undefined;
  return (text) => {
    last = read(text, last);
  };
}

class Life {
  readonly #load: () => Promise<unknown>;
  /** Those under way, by their numbers. */
  readonly #calls: Record<number, Call> = create(null);
  #module: PluginModule = { plugin: undefined, configSchema: undefined, keys: undefined };
  #hooks: Readonly<Record<string, Hook>> = {};

  constructor(load: () => Promise<unknown>) {
    this.#load = load;
  }

  async take(order: Order): Promise<void> {
    const { i } = order;
    try {
      if (order.do === 'abort') this.#calls[i]?.abort();
      else if (order.do === 'call') await this.#call(order);
      else report(i, done(await this.#prepare(order)));
    } catch (error) {
      report(i, `"threw":${stringify(thrown(error))}`);
    }
  }

  async #prepare(order: Exclude<Order, { readonly do: 'call' | 'abort' }>): Promise<unknown> {
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
      const result = await this.#hooks[hook]?.(contextOf(order, call));
      const watches = hook === 'onError' || hook === 'onResponseSent';
      report(i, `${done(watches ? undefined : meantOf(result))}${call.kept}`);
    } finally {
      call.isOver = true;
      delete this.#calls[i];
    }
  }
}

function shapeOf(value: unknown, what: string): Shape['plugin'] {
  const { name, hooks, credentials } = simplePlugin(value, what);
  return { name, hooks: Object.keys(hooks), ...(credentials && { credentials }) };
}

/** A schema as JSON. @throws PluginProblem for one that JSON would change */
function carried(schema: unknown, name: string): unknown {
  const text = stringify(schema, (_, value: unknown) => {
    if (typeof value === 'function')
      throw new PluginProblem(`its "${name}" cannot be carried to the service: it has a function`);
    return value;
  });
  return text === undefined ? undefined : parse(text);
}

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack ?? error.message) : String(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

function thrown(error: unknown): Thrown {
  const stack = clipped(textOf(error), LONGEST_TEXT);
  try {
    const { code, message, issues } = Object(error);
    if (code === 'ERR_DLOPEN_DISABLED') return { problem: true, message: ADDON, stack };
    return {
      problem: error instanceof PluginProblem,
      message: clipped(String(message ?? error), LONGEST_TEXT),
      stack,
      issues: issues && parse(stringify(issues)),
    };
  } catch {
    return { problem: false, message: 'an error that cannot be shown', stack };
  }
}
