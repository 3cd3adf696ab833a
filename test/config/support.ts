import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { stringify } from 'yaml';
import { ConfigErrors, type LoadedConfig, loadConfig } from '../../config/index.ts';
import type { LoadOptions } from '../../config/load.ts';
import type { Json } from '../../kernel/values.ts';
import { optionalKey } from '../../plugins-sdk/config-key.ts';
import { configKey, type Definition, Type } from '../../plugins-sdk/index.ts';

const closed = { additionalProperties: false };
const setup = () => ({});

export const portKey = optionalKey('server', 'port', Type.Integer({ minimum: 0, maximum: 65_535 }));
export const urlKey = configKey('api', 'url', Type.String());
export const headersKey = optionalKey('api', 'headers', Type.Record(Type.String(), Type.String()));
export const pathKey = configKey('endpoint', 'path', Type.String());
export const methodKey = optionalKey('endpoint', 'method', Type.Enum(['GET', 'POST']));
export const cacheKey = optionalKey('apiOrEndpoint', 'cache', Type.Object({ maxAge: Type.Integer({ minimum: 1 }) }));
export const limitKey = optionalKey('server', 'rateLimit.max', Type.Integer({ minimum: 1 }));
export const trustKey = optionalKey('server', 'rateLimit.trust', Type.Union([Type.Boolean(), Type.Integer()]));
export const proofLimitKey = optionalKey('server', 'rateLimit.proofs.max', Type.Integer({ minimum: 1 }));
export const proofKey = configKey(
  'settings',
  'proof',
  Type.Union([
    Type.Literal('none'),
    Type.Object({ type: Type.Literal('gateway'), gatewayUrl: Type.String({ pattern: '^https?://' }) }),
  ]),
);
export const retriesKey = configKey('endpoint', 'retry.times', Type.Integer({ minimum: 1 }));
const Scalar = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);
export const parametersKey = optionalKey(
  'endpoint',
  'parameters',
  Type.Array(
    Type.Object(
      {
        name: Type.String({ minLength: 1 }),
        secret: Type.Optional(Type.Boolean()),
        fixed: Type.Optional(Scalar),
        default: Type.Optional(Scalar),
      },
      closed,
    ),
  ),
);

/** Stand-ins for the built-in plugins, with keys of every level. */
export const upstream: Definition = {
  name: 'upstream',
  required: true,
  keys: [urlKey, headersKey, pathKey, methodKey, retriesKey],
  modes: ['sync', 'async'],
  identity: {
    url: (endpoint) => urlKey.of(endpoint) ?? null,
    path: (endpoint) => pathKey.of(endpoint) ?? null,
    method: (endpoint) => methodKey.of(endpoint) ?? 'GET',
  },
  setup,
};

export const parameters: Definition = {
  name: 'parameters',
  keys: [parametersKey],
  identity: {
    parameters: (endpoint, { interpolated }) =>
      (parametersKey.of(endpoint) ?? []).map(({ name, fixed, default: fallback, secret = false }, index): Json => {
        const hidden = secret || interpolated(`${endpoint.path}.parameters[${index}].fixed`);
        return { name, fixed: hidden ? null : (fixed ?? null), default: hidden ? null : (fallback ?? null) };
      }),
  },
  setup,
};

export const limits: Definition = {
  name: 'limits',
  budget: 'none',
  keys: [portKey, limitKey, trustKey, proofKey],
  setup,
};
export const access: Definition = {
  name: 'access',
  keys: [proofLimitKey],
  auth: {
    free: Type.Object({}, closed),
    apiKey: Type.Object({ keys: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }) }, closed),
    paid: Type.Object({ network: Type.Integer({ minimum: 1 }), rpc: Type.String({ pattern: '^https?://' }) }, closed),
  },
  setup,
};
export const cache: Definition = { name: 'cache', keys: [cacheKey], setup };

export const builtins: readonly Definition[] = [limits, access, upstream, parameters, cache];

/** The smallest config that is valid, with changes. */
export function config(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { apis = [api()], ...rest } = changes;
  return { version: '1.0', ...rest, apis };
}

export function api(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { endpoints = [endpoint()], ...rest } = changes;
  return { name: 'prices', url: 'https://api.example', auth: { type: 'free' }, ...rest, endpoints };
}

export function endpoint(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { name: 'latest', path: '/latest', ...changes };
}

/** A folder of its own, removed after the test; returns its real path. */
export async function folder(
  t: Pick<TestContext, 'after'>,
  files: Readonly<Record<string, string>> = {},
): Promise<string> {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'config-test-')));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

export interface Given extends Partial<Omit<LoadOptions, 'file'>> {
  /** Beside the config file. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Loads a config, given as YAML text or as what it says. */
export async function load(t: Pick<TestContext, 'after'>, content: unknown, given: Given = {}): Promise<LoadedConfig> {
  const { files = {}, ...options } = given;
  const text = typeof content === 'string' ? content : stringify(content, { aliasDuplicateObjects: false });
  const path = await folder(t, { ...files, 'config.yaml': text });
  return loadConfig({ file: join(path, 'config.yaml'), env: {}, builtins, ...options });
}

/** The lines of the message that loading fails with; the folder of the config file is left out. */
export async function errorsOf(t: Pick<TestContext, 'after'>, content: unknown, given: Given = {}): Promise<string[]> {
  try {
    await load(t, content, given);
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    return linesOf(error);
  }
  return [];
}

/** Its lines, without the folder of the config file. */
export function linesOf({ message }: ConfigErrors): string[] {
  return message.replaceAll(/\/[^\s:"]*\/config-test-\w+\//g, '').split('\n');
}

/** Warnings as lines. */
export function warningsOf({ warnings }: LoadedConfig): string[] {
  return warnings.map(({ path, message }) => `${path}: ${message}`);
}
