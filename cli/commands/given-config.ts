import { type LoadedConfig, loadConfig } from '../../config/index.ts';
import { definitions, type ServiceOptions } from '../../service/index.ts';
import { readEnvironment, userPath } from '../../service/surroundings.ts';
import type { Given } from '../arguments.ts';

type Warn = Parameters<typeof readEnvironment>[1];

/** Returns the config file of a command, and its variables. */
export async function givenService(given: Given, warn?: Warn): Promise<ServiceOptions> {
  return { file: userPath(given.value('config')), env: await readEnvironment(given.optional('env'), warn) };
}

/** Loads a config that a command only reads. A variable may be unset where its value is not needed. */
export async function givenConfig(given: Given, warn?: Warn): Promise<LoadedConfig> {
  return loadConfig({ ...(await givenService(given, warn)), builtins: definitions(), allowUnset: true });
}
