import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import { isRecord } from '../kernel/plain-json.ts';
import type { PublicHooks } from './hooks/contexts.ts';
import type {
  Awaitable,
  Call,
  ContextStage,
  Endpoint,
  Exchange,
  HookStage,
  Json,
  Parameters,
  Plugin,
  Route,
  StageFn,
  StageName,
  VariantStage,
} from './kernel.ts';
import type { Address } from './lib/eth/hex.ts';
import type { Meters } from './meters.ts';
import type { DescribedService, OpenApiPart, ServiceDescription } from './openapi/part.ts';
import { compileSchema } from './schema/compile.ts';
import type { SignerType } from './signing/signers.ts';
import type { SharedState, StateEngineType } from './state/area.ts';
import type { Debts } from './state/debts.ts';
import type { States } from './state/state.ts';
import type { Workers } from './workers.ts';

export { type Static, Type };

type Level = 'root' | 'server' | 'settings' | 'api' | 'endpoint' | 'shared';

/** A typed place in the config file; whoever lists it in its definition owns it. */
export interface ConfigKey<S extends TSchema = TSchema> {
  readonly level: Level;
  readonly path: string;
  readonly schema: S;
  /** The endpoint's value: its own, for a `shared` key else the API's; an `api` key reads the API's. */
  of(endpoint: Pick<Endpoint, 'own' | 'shared'>): Static<S> | undefined;
  /** The value in the whole configuration, for the levels `root`, `server` and `settings`. */
  in(config: Readonly<Record<string, unknown>>): Static<S> | undefined;
}

/**
 * Declares a config key.
 * @param level where it stands: at the top (`root`), under `server` or `settings`, in an API, in an endpoint, or in both
 * (`shared`: the endpoint's value overrides the API's).
 * @param path dotted path below that level.
 * @param schema TypeBox schema of the value; wrapped in `Type.Optional` unless every such block must have it. Its `description` goes into the published JSON Schema.
 */
export function configKey<S extends TSchema>(level: Level, path: string, schema: S): ConfigKey<S> {
  const fits = checkerOf(schema);
  const narrow = (value: unknown): Static<S> | undefined => {
    if (value === undefined) return undefined;
    if (!fits(value)) throw new Error(`config key ${path} was not validated`);
    return value as Static<S>;
  };
  const steps = path.split('.');
  // A frozen block is that of a config, frozen throughout, and looked at once: many plugins ask for the same keys.
  const known = new WeakMap<object, Static<S> | undefined>();
  const read = (block: unknown): Static<S> | undefined => {
    if (!isRecord(block)) return undefined;
    if (known.has(block)) return known.get(block);
    const value = narrow(steps.reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), block));
    if (Object.isFrozen(block)) known.set(block, value);
    return value;
  };
  return {
    level,
    path,
    schema,
    of: ({ own, shared }) => {
      if (level === 'api') return read(shared);
      const value = read(own);
      return value === undefined && level === 'shared' ? read(shared) : value;
    },
    in: (config) => read(level === 'root' ? config : config[level]),
  };
}

/** Checks from which on a compiled schema costs less, the compilation included. */
const MANY = 50;

function checkerOf(schema: TSchema): (value: unknown) => boolean {
  let checks = 0;
  let compiled: ReturnType<typeof compileSchema>;
  return (value) => {
    checks += 1;
    if (checks === MANY) compiled = compileSchema(schema);
    return compiled === undefined ? Check(schema, value) : compiled.Check(value);
  };
}

/** Where the log goes; never hand it secrets. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** What an endpoint answered to another plugin. */
export interface AskedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a plugin may use while it sets itself up. */
export interface Services {
  /** The whole validated configuration; read it through config keys. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly Endpoint[];
  /** Of the service's program. */
  readonly version: string;
  /** The signer's address. */
  readonly node: Address;
  /** Names of the request headers that carry credentials, of all auth methods of the service. */
  readonly credentials: readonly string[];
  /** Names of the response headers that scripts of other origins may read, of all plugins. */
  readonly exposed: readonly string[];
  readonly log: Log;
  /** Epoch milliseconds. */
  now(): number;
  /** What outlives a reload of the config. */
  readonly states: States;
  /** The engine of `settings.state`; without it, state is kept in this process. */
  readonly shared?: SharedState | undefined;
  /** What is owed to clients: the service does not end, within bounds, before it is paid. */
  readonly debts: Debts;
  /** Whether an endpoint cannot be served while that engine is away. */
  needsState(endpoint: Endpoint): boolean;
  /** The processes that serve together, if there are several. */
  readonly workers?: Workers | undefined;
  /** For what is worth measuring. */
  readonly meters: Meters;
  /** The plugin's own budget: milliseconds per request, as configured. */
  readonly budget: number | 'none';
  /**
   * Asks an endpoint as the client of a request could have done by itself: it is let in, authenticated, limited, paid for and
   * logged as another request with the same headers and address, and has budgets of its own. The plugin's budget does not
   * run meanwhile.
   * @param endpointId as in the path of a request.
   * @param parameters as in the body of a request.
   * @returns the response, whatever its status; its body is text, JSON unless the endpoint streams.
   * @throws TypeError for parameters that JSON cannot carry.
   */
  ask(endpointId: string, parameters: Parameters, options: { readonly as: Exchange }): Promise<AskedResponse>;
  /**
   * Has a stop, and a reload, wait for work that goes on beside requests, such as a webhook: as long as for a request, and no longer.
   * A rejection is an error in the log.
   * @throws TypeError for what is no promise.
   */
  background(work: Promise<unknown>): void;
  /** Whether the service takes requests: `starting` until every plugin has started, `stopping` once it was told to stop. */
  phase(): Phase;
  /** What all plugins say of the service, for those who publish it. @throws Error where two contradict each other. */
  describe(): ServiceDescription;
}

export type Phase = 'starting' | 'serving' | 'stopping';

/** What a check of the configuration finds. */
export interface Finding {
  readonly level: 'error' | 'warning';
  /** Config path such as `apis[0].endpoints[1].path`. */
  readonly path: string;
  readonly message: string;
}

/** An endpoint as the config file describes it, before it has an id. */
export interface EndpointDraft extends Omit<Endpoint, 'id'> {
  /** Config path of the endpoint. */
  readonly path: string;
}

/** What a check may know beyond the values. */
export interface CheckContext {
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly EndpointDraft[];
  /** Whether the value at a config path came, in whole or in part, from a variable. */
  interpolated(path: string): boolean;
}

/** Stage functions: the public hooks take a context, the inner ones the stage's arguments. */
type Tap<N extends StageName> = N extends ContextStage ? PublicHooks[N] : StageFn<N>;
export type Taps = {
  readonly [N in HookStage]?: N extends VariantStage ? Readonly<Record<string, Tap<N>>> : Tap<N>;
};

/** What a plugin does, made once at start-up. */
export interface Behaviour extends Pick<Plugin, 'start' | 'stop' | 'observe'> {
  readonly hooks?: Taps;
  readonly routes?: readonly Route[];
  /**
   * A text that becomes part of every question's key, so that answers are shared only where it is the same: for whoever changes
   * the outgoing request, or the answer, by something that the parameters do not say. It runs after `validate`.
   */
  vary?(exchange: Exchange, call: Call): Awaitable<string | undefined>;
}

/** The six members of a hashed endpoint specification. */
export type IdentityPart = 'url' | 'path' | 'method' | 'parameters' | 'encoding' | 'encrypt';

/** A plugin as registered: what it is called, what it owns in the config, and how it sets itself up. `C` is its own config. */
export interface Definition<C = unknown> {
  readonly name: string;
  /** Milliseconds per request for all hooks together; `none`: bounded by timeouts of its own. Default 1000. */
  readonly budget?: number | 'none';
  /** Without it nothing could be resolved, encoded or signed: it cannot be left out. */
  readonly required?: boolean;
  readonly keys?: readonly ConfigKey[];
  /** Schema of the plugin's own `config` block in `settings.plugins[]`. */
  readonly configSchema?: ConfigSchema;
  /** Auth types it checks: the schema of one `auth` object of each, `type` left out. */
  readonly auth?: Readonly<Record<string, TSchema>>;
  /** Modes it delivers. One that `repeats` may run the rest of the pipeline again: each run is an answer, released and settled by itself. */
  readonly modes?: readonly string[] | Readonly<Record<string, { readonly repeats?: boolean }>>;
  readonly credentials?: readonly string[];
  /** Response headers that scripts of other origins may read. */
  readonly exposes?: readonly string[];
  /** Whether scripts of other origins are told of its `credentials` and `exposes`; without it they are. */
  isAnnounced?(endpoints: readonly Endpoint[]): boolean;
  /** Engines for `settings.state`, by type. */
  readonly engines?: Readonly<Record<string, StateEngineType>>;
  /** Kinds of signers for `settings.signer`, by type. */
  readonly signers?: Readonly<Record<string, SignerType>>;
  /** What of it cannot be served without state that all processes share: when the engine is away, it is refused. */
  readonly needsState?: { readonly auth?: readonly string[]; readonly modes?: readonly string[] };
  /** Its parts of the endpoint's identity. The value is hashed into the endpoint ID. */
  readonly identity?: { readonly [P in IdentityPart]?: (endpoint: EndpointDraft, context: CheckContext) => Json };
  /** What the schema cannot say. Runs on a config that has the right shape. */
  check?(context: CheckContext): readonly Finding[];
  /** What it would have the operator think about, in one sentence for the whole config: `config validate` shows it, a start does not. */
  recommend?(endpoints: readonly Endpoint[]): string | undefined;
  /**
   * The address that answers are signed by, of a plugin that provides `sign` for all endpoints. Where several have one, that of
   * the first plugin is the service's: a built-in that another one replaces must be left out.
   * @param whole the whole config file, validated.
   */
  signerAddress?(config: C, whole: Readonly<Record<string, unknown>>): Address;
  /** Whether, by this config, requests come through a proxy: then one connection's address is not one client's. */
  behindProxy?(config: Readonly<Record<string, unknown>>): boolean;
  /** Its part of the service's OpenAPI document, which is made without `setup`. */
  openapi?(service: DescribedService): OpenApiPart;
  setup(services: Services, config: C): Behaviour;
}

/** A TypeBox (or plain JSON) schema, or anything with `parse`, which returns the value or throws. */
export type ConfigSchema = TSchema | { parse(value: unknown): unknown };

/** What a `config` block is once its schema has checked it. */
type ConfigOf<S> = S extends { parse(value: unknown): infer V } ? Awaited<V> : S extends TSchema ? Static<S> : unknown;

/** Checks the types of a plugin definition; returns it as it is. */
export function definePlugin<S extends ConfigSchema>(
  definition: Definition<ConfigOf<S>> & { readonly configSchema?: S },
): Definition {
  return definition;
}

/** Schemas by name of what a simple plugin wants to be told at each endpoint, as its file exports them as `keys`. */
export type EndpointKeys = Readonly<Record<string, TSchema>>;

/** A public hook, in whose context the endpoint's values are. */
type HookWith<K extends EndpointKeys, H> = H extends (context: infer C) => infer R
  ? (context: C & { readonly keys: { readonly [N in keyof K]?: Static<K[N]> | undefined } }) => R
  : never;

/** The shape that a plugin file's default export has, or that its factory returns. */
export interface SimplePlugin<K extends EndpointKeys = never> {
  readonly name: string;
  /** Request headers that carry credentials: only this plugin's `onHttpRequest` sees them, and preflights name them. */
  readonly credentials?: readonly string[];
  readonly hooks: {
    readonly [N in keyof PublicHooks]?: [K] extends [never] ? PublicHooks[N] : HookWith<K, PublicHooks[N]>;
  };
}
