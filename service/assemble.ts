import { type LoadedConfig, type PluginChoice, signingWarning } from '../config/index.ts';
import { checkBehaviour } from '../config/plugins/check-definition.ts';
import { missingCounterparts } from '../config/plugins/counterparts.ts';
import type { GuardOptions } from '../kernel/guard.ts';
import { errorForLog } from '../kernel/refusal.ts';
import { type PluginSet, type Registration, RegistrationError } from '../kernel/registry.ts';
import { stageNames, stages } from '../kernel/stages.ts';
import { type Address, isAddress } from '../lib/eth/hex.ts';
import type { Behaviour, Operation } from '../plugins-sdk/define.ts';
import { stateKey } from '../plugins-sdk/keys.ts';
import type { Meters } from '../plugins-sdk/meters.ts';
import type { ServiceDescription } from '../plugins-sdk/openapi.ts';
import type { Services } from '../plugins-sdk/services.ts';
import type { InBackground } from './background.ts';
import { describeService } from './description.ts';
import { type MeterSet, UNBOUNDED } from './meter-registry.ts';
import { createPluginSet } from './plugin-set.ts';
import { stateDependency } from './state-engine.ts';
import { packageVersion } from './surroundings.ts';

/** Names of the services that differ by plugin. */
type OfPlugin = 'meters' | 'budget' | 'ask' | 'background' | 'dependencies';

/** All that a set of plugins needs besides its config. */
interface Surroundings extends Omit<Services, keyof ReturnType<typeof servicesOf> | OfPlugin> {
  readonly meters: MeterSet;
  /** The addresses that sign answers. */
  readonly signers: readonly Address[];
  /** Asks the pipeline on behalf of a plugin. */
  ask(plugin: string, ...args: Parameters<Services['ask']>): ReturnType<Services['ask']>;
  readonly background: InBackground;
}

/** All plugins of a config, ready to serve, and the operations that operators can run on them. */
export type AssembledPlugins = ReturnType<typeof assemble>;

/** Sets up and registers all plugins of a config. @throws RegistrationError */
export function assemble(loaded: LoadedConfig, { signers, ...surroundings }: Surroundings) {
  const { log, meters, ask, background, now } = surroundings;
  const definitions = loaded.plugins.map(({ definition }) => definition);
  const dependencies = stateDependency(definitions, surroundings.stateEngine);
  const common = { ...surroundings, ...servicesOf(loaded), dependencies: () => dependencies };
  const operations: [name: string, run: Operation][] = [];
  const registrations = loaded.plugins.map((choice): Registration => {
    const { definition, budget, operator } = choice;
    const { name } = definition;
    const services: Services = {
      ...common,
      meters: metersOf(choice, meters),
      budget,
      ask: (...args) => ask(name, ...args),
      background: (work) => background(name, work),
    };
    const plugin = setUp(choice, services, loaded.hide);
    dependencies.push(...(plugin.dependencies ?? []));
    operations.push(...Object.entries(plugin.operations ?? {}));
    const warning = signingWarning(name, plugin.hooks ?? {});
    // The loader has already warned of simple plugins.
    const isKnown = loaded.warnings.some(({ message }) => message === warning);
    if (operator && warning !== undefined && !isKnown) log.warn(warning);
    return { name, budget, credentials: definition.credentials, isBuiltin: !operator, plugin };
  });
  const complain = ({ plugin, stage, requestId, error }: Parameters<GuardOptions['complain']>[0]) =>
    log.error(`plugin "${plugin}" failed in ${stage}`, { requestId, error: loaded.hide(errorForLog(error)) });
  const plugins = createPluginSet(registrations, complain, { signers, now, endpoints: new Set(loaded.endpoints) });
  requireProviders(plugins);
  requireCounterparts(loaded, plugins);
  return { ...plugins, operations };
}

/** Returns the services that follow from the config. */
function servicesOf(loaded: LoadedConfig) {
  const endpoints = Object.freeze(loaded.endpoints);
  const announced = loaded.plugins.filter(({ definition }) => definition.isAnnounced?.(endpoints) ?? true);
  const all = (member: 'credentials' | 'exposes') =>
    Object.freeze([...new Set(announced.flatMap(({ definition }) => definition[member] ?? []))]);
  let described: ServiceDescription | undefined;
  const describe = () => {
    described ??= describeService({ ...loaded, version: packageVersion() });
    return described;
  };
  return {
    config: loaded.config,
    answerConfig: answerConfigOf(loaded),
    version: packageVersion(),
    hide: loaded.hide,
    endpoints,
    path: loaded.path,
    credentials: all('credentials'),
    exposed: all('exposes'),
    describe,
  };
}

/** Returns the config without the keys that change no answer, such as `settings.state`. */
function answerConfigOf({ config, plugins }: LoadedConfig): Services['answerConfig'] {
  const silent = plugins.filter(({ definition }) => definition.changesAnswers === false);
  const names = [stateKey, ...silent.flatMap(({ definition }) => definition.keys ?? [])].map(
    ({ level, path }) => `${level}.${path.split('.')[0]}`,
  );
  const levels = ['server', 'settings'].map((level) => {
    const kept = Object.entries(Object(config[level])).filter(([name]) => !names.includes(`${level}.${name}`));
    return [level, Object.fromEntries(kept)];
  });
  return { ...config, ...Object.fromEntries(levels) };
}

/** Returns a plugin's meters. Isolated plugins share the service's: instruments that they make themselves are not exported. */
function metersOf({ definition: { name }, operator, isolated }: PluginChoice, meters: MeterSet): Meters {
  if (isolated) return meters.of('settings.plugins', UNBOUNDED);
  return operator ? meters.of(name) : meters.of(name, UNBOUNDED);
}

/** Returns the address that signs answers. @throws Error when the key cannot be used, or not exactly one plugin signs. */
export function signerAddressOf({ plugins, config }: LoadedConfig): Address {
  const [choice, other] = plugins.filter(({ definition }) => definition.signerAddress !== undefined);
  if (choice !== undefined && other !== undefined) {
    const names = `"${choice.definition.name}" and "${other.definition.name}"`;
    throw new RegistrationError(`plugins ${names} both sign for all endpoints: leave one out`);
  }
  if (choice === undefined)
    throw new RegistrationError(
      'nothing signs answers: the built-in signer cannot be left out without another plugin that has "signerAddress"',
    );
  const { name, signerAddress } = choice.definition;
  const address: unknown = signerAddress?.call(choice.definition, choice.config, config);
  if (!isAddress(address))
    throw new RegistrationError(`${placeOf(choice)}plugin "${name}": "signerAddress" returned no address`);
  return address;
}

function requireProviders({ taps }: PluginSet): void {
  for (const stage of stageNames) {
    if (stages[stage].required && taps[stage].length === 0)
      throw new RegistrationError(`no plugin provides "${stage}", without which nothing can be served`);
  }
}

/** Checks that no plugin lacks a counterpart. @throws RegistrationError */
function requireCounterparts({ plugins, endpoints }: LoadedConfig, { taps }: PluginSet): void {
  const definitions = plugins.map(({ definition }) => definition);
  const [missing] = missingCounterparts(definitions, taps, endpoints);
  if (missing === undefined) return;
  const { plugin, why } = missing;
  const place = placeOf(plugins.find(({ definition }) => definition.name === plugin));
  throw new RegistrationError(`${place}plugin "${plugin}": ${why}`);
}

/** Returns the place in the config that names a plugin, such as `settings.plugins[0] (line 9): `; `''` for a built-in. */
function placeOf({ path, line }: Pick<PluginChoice, 'path' | 'line'> = {}): string {
  if (path === undefined) return '';
  return line === undefined ? `${path}: ` : `${path} (line ${line}): `;
}

function setUp(choice: PluginChoice, services: Services, hide: LoadedConfig['hide']): Behaviour {
  const { definition, config, source, path } = choice;
  try {
    return checkBehaviour(definition.setup(services, config));
  } catch (error) {
    const plugin = path === undefined ? source : `"${definition.name}" of ${source}`;
    const why = hide(errorForLog(error, 'message'));
    throw new RegistrationError(`${placeOf(choice)}plugin ${plugin} cannot be set up: ${why}`);
  }
}
