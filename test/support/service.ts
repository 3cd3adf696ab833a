import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { type Service, startService } from '../../service/index.ts';
import { createLog, type ServiceLog } from '../../service/log.ts';
import { publicKeyWarning } from '../../service/public-keys.ts';
import { endsWith, type Lifetime } from './lifetime.ts';

/** A key that is public knowledge (the first account of every local test chain), and its address. */
export const TEST_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
export const TEST_ADDRESS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

/** Encodes the number under the key `price`. */
export const encoding = { type: 'uint256', path: '$.price' };

/** A mapping of a config. */
export type Block = Readonly<Record<string, unknown>>;

/** A config with one free API called `api`; endpoints are given by name. */
export function oneApi(
  url: string,
  endpoints: Readonly<Record<string, Block>>,
  { api = {}, ...rest }: { api?: Block } & Block = {},
) {
  const list = Object.entries(endpoints).map(([name, endpoint]) => ({ name, path: `/${name}`, ...endpoint }));
  return { ...rest, apis: [{ name: 'api', url, auth: { type: 'free' }, ...api, endpoints: list }] };
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface RunningService extends Service {
  readonly logs: LogLine[];
  /** The log as its reader gets it, with `LOG_FORMAT=json`. */
  written(): string;
  /** Endpoint IDs by `<api>/<endpoint>`, read from the start-up log. */
  readonly ids: Readonly<Record<string, string>>;
  /** The folder of the config file. */
  readonly folder: string;
  /** POSTs `{parameters}` to the endpoint of that name. */
  post(endpoint: string, parameters?: unknown, headers?: Record<string, string>): Promise<Response>;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Further files beside the config, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A real service in this process, on a free port of the loopback interface, without a rate limit unless one is configured. */
export async function startTestService(config: Block, options: StartOptions = {}): Promise<RunningService> {
  const folder = await mkdtemp(join(tmpdir(), 'sdp-'));
  const server = { port: 0, drainDelay: 0, rateLimit: { max: 1_000_000 }, ...(config.server as object | undefined) };
  const file = join(folder, 'config.yaml');
  await writeFile(file, stringify({ version: '1.0', ...config, server }));
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  const logs: LogLine[] = [];
  let written = '';
  const json = createLog({ level: 'debug', format: 'json', colour: false }, { write: (line) => (written += line) });
  const at =
    (level: LogLine['level']) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      // Said of the key of every test; test/cli/public-keys.test.ts is about it.
      if (message === publicKeyWarning(TEST_ADDRESS)) return;
      logs.push({ level, message, fields });
      if (format === 'json') json[level](message, fields);
    };
  const format = options.env?.LOG_FORMAT === 'json' ? 'json' : 'text';
  const log: ServiceLog = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), format };
  const service = await startService({ file, env: { SERVICE_PRIVATE_KEY: TEST_KEY, ...options.env }, log });
  const ids = Object.fromEntries(
    logs.flatMap(({ message }) => {
      const match = /^(.+\/.+) (0x[0-9a-f]{64})$/.exec(message);
      return match?.[1] && match[2] ? [[match[1], match[2]]] : [];
    }),
  );
  return {
    ...service,
    logs,
    written: () => written,
    ids,
    folder,
    post: (endpoint, parameters, headers = {}) =>
      fetch(`${service.url}/endpoints/${ids[endpoint]}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify(parameters === undefined ? {} : { parameters }),
      }),
    stop: async () => {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A service that ends with the test or the suite. */
export function serviceFor(lifetime: Lifetime, ...given: Parameters<typeof startTestService>): Promise<RunningService> {
  return endsWith(lifetime, startTestService(...given));
}
