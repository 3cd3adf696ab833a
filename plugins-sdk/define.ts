import type { Static, TSchema } from 'typebox';
import type { Exchange } from '../kernel/exchange.ts';
import type { Plugin, Route } from '../kernel/registry.ts';
import type { StageName, VariantStage } from '../kernel/stages.ts';
import type { Awaitable, CallContext, Endpoint, Json } from '../kernel/values.ts';
import type { Address } from '../lib/eth/hex.ts';
import type { ConfigKey } from './config-key.ts';
import type { PublicHooks } from './hooks/contexts.ts';
import type { DescribedService, OpenApiPart } from './openapi.ts';
import type { Dependency, Services } from './services.ts';
import type { SignerType } from './signing/signers.ts';
import type { ContextStage, HookStage, StageFn } from './stage-functions.ts';
import type { StateEngineType } from './state/area.ts';

/** An error or a warning about the config. */
export interface Finding {
  readonly level: 'error' | 'warning';
  /** Config path such as `apis[0].endpoints[1].path`. */
  readonly path: string;
  readonly message: string;
}

/** Makes a finding that stops the start. */
export function errorAt(path: string, message: string): Finding {
  return { level: 'error', path, message };
}

/** Makes a finding that does not stop the start. */
export function warningAt(path: string, message: string): Finding {
  return { level: 'warning', path, message };
}

/** An endpoint of the config, before it has an ID. */
export interface EndpointDraft extends Omit<Endpoint, 'id'> {
  /** Config path of the endpoint. */
  readonly path: string;
}

/** The argument of a plugin's `Definition.check`. */
export interface CheckContext {
  /** The whole config, in the right shape. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly EndpointDraft[];
  /** Returns whether the value at a config path, or one inside it, came in whole or in part from a variable. */
  interpolated(path: string): boolean;
  /** Returns the absolute form of a path that is relative to the config file. */
  path(relative: string): string;
}

/** A stage's function: a public hook takes a context, any other the stage's arguments. */
type Tap<N extends StageName> = N extends ContextStage ? PublicHooks[N] : StageFn<N>;
/** A plugin's functions by stage; `Taps['callApi']` is the type of the function at `callApi`. */
export type Taps = {
  readonly [N in HookStage]?: N extends VariantStage ? Readonly<Record<string, Tap<N>>> : Tap<N>;
};

/** One thing that an operation found, as texts by name. The command prints it as a table with a row for each text. */
export type OperationResult = Readonly<Record<string, string>>;

/**
 * A command that operators can give to the running service, or to its state once it is stopped.
 * @returns a result for each thing that it found; none if it knows of nothing, and another plugin may.
 * @throws Error that says why it cannot be done, and what to do.
 */
export type Operation = (words: Readonly<Record<string, string>>) => Promise<readonly OperationResult[]>;

/** The plugin's functions, as `setup` returns them. */
export interface Behaviour extends Pick<Plugin, 'start' | 'stop' | 'observe'> {
  readonly hooks?: Taps;
  readonly routes?: readonly Route[];
  /**
   * Operations by name: the command `payments` asks for `payments list`, `payments show`, `payments release` and
   * `payments reconcile`. They may run without `start`, in another process.
   */
  readonly operations?: Readonly<Record<string, Operation>>;
  /** Things outside the process that its endpoints depend on, for `GET /ready`. */
  readonly dependencies?: readonly Dependency[];
  /**
   * Returns a text that becomes part of the question's key, so that requests share an answer only if the text is the same. A
   * plugin needs it if it changes the outgoing request or the answer by something that is in no parameter. It runs after
   * `validate`.
   */
  vary?(exchange: Exchange, call: CallContext): Awaitable<string | undefined>;
}

/** The six members of a hashed endpoint specification. */
export const identityParts = ['url', 'path', 'method', 'parameters', 'encoding', 'encrypt'] as const;
/** One of {@link identityParts}. */
export type IdentityPart = (typeof identityParts)[number];

/** A plugin's definition: its name, its config keys and its `setup`. `C` is the type of its own config. */
export interface Definition<C = unknown> {
  readonly name: string;
  /**
   * Milliseconds per request for all hooks together, without the time inside `run` and `next`; default 1000. A function
   * computes it from the config, for a plugin with configured timeouts. `none`: the plugin bounds its own `callApi`, `answer`
   * or `present`, and has 1000 ms for its other hooks.
   */
  readonly budget?:
    | number
    | 'none'
    | ((config: Readonly<Record<string, unknown>>, endpoints: readonly Endpoint[]) => number);
  /** Whether the config cannot leave the plugin out: without it nothing could be resolved, encoded or signed. */
  readonly required?: boolean;
  /** The config keys that the plugin owns. */
  readonly keys?: readonly ConfigKey[];
  /** `false` if no answer depends on the values of its keys: answers that were kept before a change stay valid. */
  readonly changesAnswers?: boolean;
  /** Schema of the plugin's own `config` block in `settings.plugins[]`. */
  readonly configSchema?: ConfigSchema;
  /** Auth types that it checks: for each the schema of an `auth` object, without `type`. */
  readonly auth?: Readonly<Record<string, TSchema>>;
  /** Modes that it presents answers in. */
  readonly modes?: readonly string[];
  /** Request headers that carry credentials: other plugins' `onHttpRequest` does not see them, and preflights name them. */
  readonly credentials?: readonly string[];
  /** Response headers that scripts of other origins may read. */
  readonly exposes?: readonly string[];
  /** Returns whether scripts of other origins may use its `credentials` and `exposes`; by default they may. */
  isAnnounced?(endpoints: readonly Endpoint[]): boolean;
  /** State engines for `settings.state`, by type. */
  readonly engines?: Readonly<Record<string, StateEngineType>>;
  /** Kinds of signers for `settings.signer`, by type. */
  readonly signers?: Readonly<Record<string, SignerType>>;
  /** Auth types and modes that need the shared engine. They are refused while it is unreachable. */
  readonly requiresSharedState?: { readonly auth?: readonly string[]; readonly modes?: readonly string[] };
  /** Functions that return parts of an endpoint's specification. The parts are hashed into the endpoint ID. */
  readonly identity?: { readonly [P in IdentityPart]?: (endpoint: EndpointDraft, context: CheckContext) => Json };
  /** Checks what a schema cannot. It runs on a config that has the right shape. */
  check?(context: CheckContext): readonly Finding[];
  /** Returns advice to the operator in one sentence for the whole config. `config validate` shows it, a start does not. */
  recommend?(endpoints: readonly Endpoint[], config: Readonly<Record<string, unknown>>): string | undefined;
  /**
   * Returns the signer's address, for a plugin that provides `sign` for all endpoints. Two plugins that have one stop the
   * start: the config must leave out a built-in that another plugin replaces.
   * @param whole the whole config file, validated.
   */
  signerAddress?(config: C, whole: Readonly<Record<string, unknown>>): Address;
  /** Returns whether requests come through a proxy by this config. Then one address is not one client's. */
  behindProxy?(config: Readonly<Record<string, unknown>>): boolean;
  /** Returns its part of the service's OpenAPI document, which is made without `setup`. */
  openapi?(service: DescribedService): OpenApiPart;
  /** Sets the plugin up for one config, and returns its functions. */
  setup(services: Services, config: C): Behaviour;
}

/** A TypeBox or plain JSON schema, or an object whose `parse` returns the value or throws. */
export type ConfigSchema = TSchema | { parse(value: unknown): unknown };

/** The type of a `config` block that its schema has checked. */
type ConfigOf<S> = S extends { parse(value: unknown): infer V } ? Awaited<V> : S extends TSchema ? Static<S> : unknown;

/** Checks the types of a plugin definition and returns it. */
export function definePlugin<S extends ConfigSchema>(
  definition: Definition<ConfigOf<S>> & { readonly configSchema?: S },
): Definition {
  return definition;
}

/** The schemas, by name, of a simple plugin's values at each endpoint. Its file exports them as `keys`. */
export type EndpointKeys = Readonly<Record<string, TSchema>>;

/** A public hook whose context has the endpoint's values as `keys`. */
type HookWith<K extends EndpointKeys, H> = H extends (context: infer C) => infer R
  ? (context: C & { readonly keys: { readonly [N in keyof K]?: Static<K[N]> | undefined } }) => R
  : never;

/** A plugin of public hooks only: the default export of a plugin file, or the result of its factory. */
export interface SimplePlugin<K extends EndpointKeys = never> {
  readonly name: string;
  /** Request headers that carry credentials: only this plugin's `onHttpRequest` sees them, and preflights name them. */
  readonly credentials?: readonly string[];
  readonly hooks: {
    readonly [N in keyof PublicHooks]?: [K] extends [never] ? PublicHooks[N] : HookWith<K, PublicHooks[N]>;
  };
}
