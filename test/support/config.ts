import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { ConfigErrors, type LoadedConfig, loadConfig } from '../../config/index.ts';
import { definitions } from '../../service/index.ts';

type Variables = Readonly<Record<string, string>>;

/** Loads a config object as the service would load its file. @throws ConfigErrors */
export async function loadObject(
  config: Readonly<Record<string, unknown>>,
  env: Variables = {},
): Promise<LoadedConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'sdp-config-'));
  try {
    const file = join(folder, 'config.yaml');
    await writeFile(file, stringify({ version: '1.0', ...config }));
    return await loadConfig({ file, env, builtins: definitions() });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The lines of all errors of a config object; none when it can be used. */
export async function errorsOf(config: Readonly<Record<string, unknown>>, env: Variables = {}): Promise<string[]> {
  try {
    await loadObject(config, env);
    return [];
  } catch (error) {
    if (error instanceof ConfigErrors) return error.message.split('\n');
    throw error;
  }
}

/** The lines of all warnings of a config object that can be used. */
export async function warningsOf(config: Readonly<Record<string, unknown>>, env: Variables = {}): Promise<string[]> {
  const { warnings } = await loadObject(config, env);
  return warnings.map(({ path, message }) => `${path}: ${message}`);
}
