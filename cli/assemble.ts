import { type LoadedConfig, type PluginChoice, signingHooks } from '../config/index.ts';
import { describe as textOf } from '../kernel/refusal.ts';
import { type PluginSet, type Registration, RegistrationError } from '../kernel/registry.ts';
import { stageNames, stageOf } from '../kernel/stages.ts';
import type { Behaviour, Services } from '../plugins-sdk/define.ts';
import type { Address } from '../plugins-sdk/hex.ts';
import { type MeterSet, UNBOUNDED } from '../plugins-sdk/meters.ts';
import { describeService } from '../plugins-sdk/openapi.ts';
import type { ServiceDescription } from '../plugins-sdk/openapi-part.ts';
import { createPluginSet, type ObservedPlugins } from '../plugins-sdk/plugin-set.ts';

/** What a set of plugins needs besides its config. */
export interface Surroundings
  extends Omit<Services, 'config' | 'endpoints' | 'credentials' | 'meters' | 'budget' | 'ask' | 'describe'> {
  readonly meters: MeterSet;
  /** Asks the pipeline on behalf of a plugin. */
  ask(plugin: string, ...args: Parameters<Services['ask']>): ReturnType<Services['ask']>;
}

/** Sets up and registers all plugins of a config. @throws RegistrationError */
export function assemble(loaded: LoadedConfig, surroundings: Surroundings): ObservedPlugins {
  const { log, meters, ask } = surroundings;
  const { config } = loaded;
  const endpoints = Object.freeze(loaded.endpoints);
  const credentials = Object.freeze(loaded.plugins.flatMap(({ definition }) => definition.credentials ?? []));
  let described: ServiceDescription | undefined;
  const describe = () => {
    described ??= describeService(loaded);
    return described;
  };
  const registrations = loaded.plugins.map((choice): Registration => {
    const { definition, budget, operator } = choice;
    const { name } = definition;
    const services: Services = {
      ...surroundings,
      config,
      endpoints,
      credentials,
      describe,
      meters: operator ? meters.of(name) : meters.of(name, UNBOUNDED),
      budget,
      ask: (...args) => ask(name, ...args),
    };
    const plugin = setUp(choice, services, loaded.hide);
    warnOfSigning(choice, plugin, loaded, surroundings);
    return { name, budget, credentials: definition.credentials, fallback: !operator, plugin };
  });
  const plugins = createPluginSet(registrations, ({ plugin, stage, requestId, error }) => {
    log.error(`plugin "${plugin}" failed in ${stage}`, { requestId, error: loaded.hide(textOf(error)) });
  });
  requireProviders(plugins);
  return plugins;
}

/** @throws Error when the key cannot be used, and when nothing signs. */
export function signerAddressOf({ plugins }: LoadedConfig): Address {
  const [choice, other] = plugins.filter(({ definition }) => definition.signerAddress !== undefined);
  if (choice !== undefined && other !== undefined) {
    const names = `"${choice.definition.name}" and "${other.definition.name}"`;
    throw new RegistrationError(`plugins ${names} both sign for all endpoints: leave one out`);
  }
  const address = choice?.definition.signerAddress?.(choice.config);
  if (address === undefined)
    throw new RegistrationError('nothing signs answers: the built-in signer cannot be left out without another plugin');
  return address;
}

function requireProviders({ taps }: PluginSet): void {
  for (const stage of stageNames) {
    if (stageOf(stage).required && taps[stage].length === 0)
      throw new RegistrationError(`no plugin provides "${stage}", without which nothing can be served`);
  }
}

function setUp(
  { definition, source, config }: PluginChoice,
  services: Services,
  hide: LoadedConfig['hide'],
): Behaviour {
  try {
    return behaviourOf(definition.setup(services, config));
  } catch (error) {
    throw new RegistrationError(`plugin ${source} cannot be set up: ${hide(messageOf(error))}`);
  }
}

const MEMBERS = ['hooks', 'routes', 'observe', 'start', 'stop'];

/** Checks what `setup` returned. A promise is refused, since it would pass for a plugin without hooks. */
function behaviourOf(made: Behaviour): Behaviour {
  if (typeof made !== 'object' || made === null || 'then' in made) {
    throw new Error(`"setup" must return {${MEMBERS.join(', ')}} at once`);
  }
  const odd = Object.keys(made).find((member) => !MEMBERS.includes(member));
  if (odd !== undefined) throw new Error(`"setup" returned an unknown member "${odd}"`);
  return made;
}

/** Warns of full plugins that can change what is signed: their hooks are known only now. Of simple ones the loader has warned. */
function warnOfSigning(
  { definition, operator }: PluginChoice,
  { hooks = {} }: Behaviour,
  loaded: LoadedConfig,
  { log }: Surroundings,
): void {
  const warning = `${definition.name}: ${signingHooks(hooks).join(', ')}`;
  const known = loaded.warnings.some(({ message }) => message === warning);
  if (operator && !known && signingHooks(hooks).length > 0) log.warn(warning);
}

/** Text of what was thrown, without a stack where there is a message. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : textOf(error);
}
