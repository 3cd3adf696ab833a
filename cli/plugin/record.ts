import { isIP } from 'node:net';
import { extname } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { readBounded } from '../../config/files.ts';
import { ConfigErrors, errorAt } from '../../config/findings.ts';
import { blockSchemas } from '../../config/schema/compose.ts';
import { LIMITS, readConfigFile } from '../../config/yaml.ts';
import { jsonIn } from '../../lib/json/value.ts';
import type { Definition } from '../../plugins-sdk/define.ts';
import type { Json } from '../../plugins-sdk/index.ts';
import { keys } from '../../plugins-sdk/keys.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import { explain } from '../../plugins-sdk/schema/explain.ts';

const AnyJson = Type.Unsafe<Json>(Type.Unknown());
const AnyBlock = Type.Record(Type.String(), Type.Unknown());

const RecordSchema = closedObject({
  endpoint: Type.Optional(
    closedObject({
      api: Type.Optional(Type.String({ minLength: 1 })),
      name: Type.Optional(Type.String({ minLength: 1 })),
      mode: Type.Optional(Type.String()),
      auth: Type.Optional(
        Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }), { minItems: 1 }),
      ),
      encoding: Type.Optional(keys.encoding.schema),
      own: Type.Optional(AnyBlock),
      shared: Type.Optional(AnyBlock),
    }),
  ),
  parameters: Type.Optional(Type.Record(Type.String(), AnyJson)),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  ip: Type.Optional(Type.String()),
  response: Type.Optional(
    closedObject({ data: AnyJson, status: Type.Optional(Type.Integer({ minimum: 200, maximum: 299 })) }),
  ),
  data: Type.Optional(
    Type.Unsafe<`0x${string}`>(
      Type.String({ pattern: '^0x(?:[0-9a-fA-F]{2})*$', description: '0x and hex digits of whole bytes' }),
    ),
  ),
  error: Type.Optional(
    closedObject({
      status: Type.Optional(Type.Integer({ minimum: 400, maximum: 599 })),
      message: Type.Optional(Type.String()),
    }),
  ),
});

/**
 * A request as a client sent it, and what the upstream answered; every member has a default.
 *
 * - `endpoint`: `api` and `name`, `mode`, `auth` (a list), and `encoding` as in the config file. Values of a plugin's own config keys
 *   are in `own` for the endpoint, and in `shared` for its API.
 * - `parameters`, `headers`, `ip`: the client's; parameters count as declared.
 * - `response`: the upstream's `data` and `status`.
 * - `data`: the bytes that `onBeforeSign` gets where the endpoint has no encoding.
 * - `error`: the `status` and `message` that `onError` gets where nothing else fails.
 */
export type RecordedRequest = Static<typeof RecordSchema>;

/** What is run where nothing was recorded. */
export const sample: RecordedRequest = {
  endpoint: {
    api: 'prices',
    name: 'eth-usd',
    encoding: { type: 'int256', path: '$.price', times: '1e18' },
  },
  parameters: { symbol: 'ETHUSD' },
  headers: { 'user-agent': 'curl/8.5.0', 'content-type': 'application/json' },
  ip: '203.0.113.7',
  response: { data: { symbol: 'ETHUSD', price: 2064.012345, updated: '2026-01-01T00:00:00Z' }, status: 200 },
};

/**
 * Reads a recorded request: JSON from a file named `.json`, else YAML as in a config file.
 *
 * @throws ConfigErrors naming the file and everything that is wrong with it.
 */
export async function readRecord(file: string): Promise<RecordedRequest> {
  const value = extname(file) === '.json' ? await readJson(file) : await readConfigFile(file, LIMITS);
  const findings = explain(RecordSchema, value, '').map(({ path, message }) => {
    return errorAt(file, path === '' ? message : `${path}: ${message}`);
  });
  if (findings.length > 0 || !Check(RecordSchema, value)) throw new ConfigErrors(findings);
  if (value.ip !== undefined && isIP(value.ip) === 0) throw new ConfigErrors([errorAt(file, 'ip: no IP address')]);
  return value;
}

/**
 * Checks the values of config keys at the recorded endpoint as the service would those in its config file.
 *
 * @throws ConfigErrors naming the file and everything that is wrong with them.
 */
export function checkKeys({ endpoint = {} }: RecordedRequest, definitions: readonly Definition[], file: string): void {
  const schemas = blockSchemas(definitions);
  const findings = (['own', 'shared'] as const).flatMap((block) =>
    explain(schemas[block], endpoint[block] ?? {}, `endpoint.${block}`),
  );
  const errors = findings.map(({ path, message }) => errorAt(file, `${path}: ${message}`));
  if (errors.length > 0) throw new ConfigErrors(errors);
}

/** Not as YAML: there a number with more digits than a double has is an error, and upstreams send such numbers. */
async function readJson(file: string): Promise<unknown> {
  const value = jsonIn((await readBounded(file)).toString('utf8'));
  if (value === undefined) throw new ConfigErrors([errorAt(file, 'malformed JSON')]);
  return value;
}
