import { keys } from '../../plugins-sdk/keys.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { definitions } from '../../service/index.ts';
import { readEnvironment, userDirectory, userPath } from '../../service/surroundings.ts';
import { complain, print } from '../../service/terminal.ts';
import { align, escapeUnprintable } from '../../service/text.ts';
import { type Given, numberOption } from '../arguments.ts';
import type { Step, Trial } from '../plugin/run.ts';

/** Milliseconds that the plugin's module, its factory and its start may take each, as in the service. */
const START_TIMEOUT_MS = 30_000;

/**
 * Loads a plugin as the service would and passes a recorded request, or a sample, through its hooks.
 *
 * @param source as in `settings.plugins[].source`, relative to where the user stands.
 * @returns 0, or 1 when a hook dropped the request, failed or spent its budget, or nothing could be encoded.
 */
export async function testPluginFile(given: Given, source: string): Promise<number> {
  const timeout = numberOption(given, 'timeout', /^\d{1,10}$/, '<ms> must be a whole number');
  const env = await readEnvironment(given.optional('env'));
  const config = await readConfig(given.optional('config'));
  const { checkKeys, readRecord, sample } = await import('../plugin/record.ts');
  const recording = given.optional('request');
  const record = recording === undefined ? sample : await readRecord(userPath(recording));
  const { loadPlugin } = await import('../plugin/load.ts');
  const builtins = definitions();
  const folder = userDirectory();
  const choice = await loadPlugin({ source, folder, timeout, config, env, builtins, patience: START_TIMEOUT_MS });
  checkKeys(record, [...builtins, choice.definition], recording ?? 'sample');
  const encoder = builtins.find((builtin) => builtin.keys?.some(({ path }) => path === keys.encoding.path));
  if (encoder === undefined) throw new Error('nothing encodes');
  const credentials = builtins.flatMap((builtin) => builtin.credentials ?? []);
  const { runRecorded } = await import('../plugin/run.ts');
  const trial: Trial = { choice, record, encoder, credentials, log, patience: START_TIMEOUT_MS };
  const steps = await runRecorded(trial);
  await print(report(trial, recording ?? 'a sample', steps));
  return steps.some(({ fault }) => fault) ? 1 : 0;
}

/** The plugin's `config` block: JSON or YAML in braces as it stands, else the name of a file that holds it. */
async function readConfig(text: string | undefined): Promise<unknown> {
  if (text === undefined) return undefined;
  const { parseConfig, readConfigFile } = await import('../../config/yaml.ts');
  return text.trimStart().startsWith('{') ? parseConfig(text, '--config') : readConfigFile(userPath(text));
}

function report({ choice, record: { endpoint = {} } }: Trial, recording: string, steps: readonly Step[]): string {
  const { definition, budget } = choice;
  const limit = budget === 'none' ? 'no budget' : `${budget} ms for all hooks of a request`;
  const { api = 'test-api', name = 'test-endpoint' } = endpoint;
  const rows = steps.map((step) => [
    step.name,
    step.spent === undefined ? '' : `${step.spent.toFixed(1)} ms`,
    step.text,
  ]);
  const lines = [
    `plugin ${definition.name}: ${limit}`,
    `request ${recording}: ${api}/${name}`,
    '',
    ...align([['HOOK', 'SPENT', 'OUTCOME'], ...rows]),
    ...(steps.length === 0 ? ['no hooks'] : []),
  ];
  return lines.map((line) => `${escapeUnprintable(line)}\n`).join('');
}

const log: Log = {
  debug: () => undefined,
  info: (message) => void complain('info', [message]),
  warn: (message) => void complain('warning', [message]),
  error: (message) => void complain('error', [message]),
};
