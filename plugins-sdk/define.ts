import type { Static, TSchema } from 'typebox';
import type { Address } from '../lib/eth/hex.ts';
import type { ConfigKey } from './config-key.ts';
import type { PublicHooks } from './hooks/contexts.ts';
import type {
  Awaitable,
  CallContext,
  ContextStage,
  Endpoint,
  Exchange,
  HookStage,
  Json,
  Plugin,
  Route,
  StageFn,
  StageName,
  VariantStage,
} from './kernel.ts';
import type { DescribedService, OpenApiPart } from './openapi.ts';
import type { Dependency, Services } from './services.ts';
import type { SignerType } from './signing/signers.ts';
import type { StateEngineType } from './state/area.ts';

/** An error or a warning about the config. */
export interface Finding {
  readonly level: 'error' | 'warning';
  /** Config path such as `apis[0].endpoints[1].path`. */
  readonly path: string;
  readonly message: string;
}

/** An endpoint of the config, before it has an ID. */
export interface EndpointDraft extends Omit<Endpoint, 'id'> {
  /** Config path of the endpoint. */
  readonly path: string;
}

/** What a check gets. */
export interface CheckContext {
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly EndpointDraft[];
  /** Whether the value at a config path, or one inside it, came in whole or in part from a variable. */
  interpolated(path: string): boolean;
  /** Absolute path of a file, given one that is relative to the config file. */
  path(relative: string): string;
}

/** Stage functions: the public hooks take a context, the inner ones the stage's arguments. */
type Tap<N extends StageName> = N extends ContextStage ? PublicHooks[N] : StageFn<N>;
/** A plugin's functions by stage; `Taps['callApi']` is the type of one. */
export type Taps = {
  readonly [N in HookStage]?: N extends VariantStage ? Readonly<Record<string, Tap<N>>> : Tap<N>;
};

/** The result of an operation: texts by name. */
export type OperationResult = Readonly<Record<string, string>>;

/**
 * What operators can ask of the running service, or of its state once it is stopped.
 * @returns a table for each thing that it knows of; none: another plugin may know.
 * @throws Error that says why it cannot be done, and what to do.
 */
export type Operation = (words: Readonly<Record<string, string>>) => Promise<readonly OperationResult[]>;

/** What `setup` returns: the plugin's functions. */
export interface Behaviour extends Pick<Plugin, 'start' | 'stop' | 'observe'> {
  readonly hooks?: Taps;
  readonly routes?: readonly Route[];
  /** By name: the command `payments` asks for `payments list`, `payments show`, `payments release` and `payments reconcile`. It may run without `start`, in another process. */
  readonly operations?: Readonly<Record<string, Operation>>;
  /** What outside the process its endpoints depend on, for `GET /ready`. */
  readonly dependencies?: readonly Dependency[];
  /**
   * A text that becomes part of every question's key, so that answers are shared only where it is the same. It is for whoever changes
   * the outgoing request, or the answer, by something that the parameters do not say. It runs after `validate`.
   */
  vary?(exchange: Exchange, call: CallContext): Awaitable<string | undefined>;
}

/** The six members of a hashed endpoint specification. */
export const identityParts = ['url', 'path', 'method', 'parameters', 'encoding', 'encrypt'] as const;
/** One of {@link identityParts}. */
export type IdentityPart = (typeof identityParts)[number];

/** A plugin as registered: its name, its config keys, its `setup`. `C` is its own config. */
export interface Definition<C = unknown> {
  readonly name: string;
  /**
   * Milliseconds per request for all hooks together, without the time inside `run` and `next`; default 1000. A function says it by the
   * config, where a plugin calls out with timeouts that are configured. `none`: it bounds its own `callApi`, `answer` or `present`.
   */
  readonly budget?:
    | number
    | 'none'
    | ((config: Readonly<Record<string, unknown>>, endpoints: readonly Endpoint[]) => number);
  /** Without it nothing could be resolved, encoded or signed: it cannot be left out. */
  readonly required?: boolean;
  readonly keys?: readonly ConfigKey[];
  /** `false` where no answer depends on what its keys say: answers that were kept before they changed are good. */
  readonly changesAnswers?: boolean;
  /** Schema of the plugin's own `config` block in `settings.plugins[]`. */
  readonly configSchema?: ConfigSchema;
  /** Auth types it checks: the schema of one `auth` object of each, `type` left out. */
  readonly auth?: Readonly<Record<string, TSchema>>;
  /** Modes it presents answers in. */
  readonly modes?: readonly string[];
  readonly credentials?: readonly string[];
  /** Response headers that scripts of other origins may read. */
  readonly exposes?: readonly string[];
  /** Whether scripts of other origins are told of its `credentials` and `exposes`; without it they are. */
  isAnnounced?(endpoints: readonly Endpoint[]): boolean;
  /** Engines for `settings.state`, by type. */
  readonly engines?: Readonly<Record<string, StateEngineType>>;
  /** Kinds of signers for `settings.signer`, by type. */
  readonly signers?: Readonly<Record<string, SignerType>>;
  /** Auth types and modes that need the shared engine. They are refused while it is unreachable. */
  readonly requiresSharedState?: { readonly auth?: readonly string[]; readonly modes?: readonly string[] };
  /** Its parts of the endpoint's identity. The value is hashed into the endpoint ID. */
  readonly identity?: { readonly [P in IdentityPart]?: (endpoint: EndpointDraft, context: CheckContext) => Json };
  /** What the schema cannot say. Runs on a config that has the right shape. */
  check?(context: CheckContext): readonly Finding[];
  /** What it would have the operator think about, in one sentence for the whole config: `config validate` shows it, a start does not. */
  recommend?(endpoints: readonly Endpoint[], config: Readonly<Record<string, unknown>>): string | undefined;
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

/** Checks the types of a plugin definition and returns it. */
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

/** The default export of a plugin file, or what its factory returns. */
export interface SimplePlugin<K extends EndpointKeys = never> {
  readonly name: string;
  /** Request headers that carry credentials: only this plugin's `onHttpRequest` sees them, and preflights name them. */
  readonly credentials?: readonly string[];
  readonly hooks: {
    readonly [N in keyof PublicHooks]?: [K] extends [never] ? PublicHooks[N] : HookWith<K, PublicHooks[N]>;
  };
}
