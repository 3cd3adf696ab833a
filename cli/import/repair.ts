import type { Finding } from '../../plugins-sdk/define.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import type { Imported, ImportedApi, ImportedEndpoint } from './convert.ts';

/** Rounds of checks; each removes something, mostly all that is wrong. */
const MOST_ROUNDS = 50;

/**
 * Removes what the service would refuse, and lists it with the words of the refusal. That is a part of a schema, a parameter, an
 * endpoint, or an API. What is left is a config that can be used.
 * @param check says what is wrong with `apis`.
 */
export async function repair(
  imported: Imported,
  check: (apis: readonly ImportedApi[]) => Promise<readonly Finding[]>,
): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const filled = imported.apis.filter(({ endpoints }) => endpoints.length > 0);
    imported.apis.splice(0, imported.apis.length, ...filled);
    const findings = filled.length === 0 ? [] : (await check(filled)).filter(({ level }) => level === 'error');
    if (findings.length === 0) return;
    const removed = new Set<object>();
    for (const finding of findings) remove(imported, finding, removed);
    for (const api of filled) {
      api.endpoints.splice(0, api.endpoints.length, ...api.endpoints.filter((endpoint) => !removed.has(endpoint)));
      for (const endpoint of api.endpoints) prune(endpoint, removed);
    }
    imported.apis.splice(0, filled.length, ...filled.filter((api) => !removed.has(api)));
  }
  throw new Error('the document cannot be made a config: there is always more that is wrong');
}

function prune(endpoint: ImportedEndpoint, removed: ReadonlySet<object>): void {
  const left = endpoint.parameters?.filter((parameter) => !removed.has(parameter));
  if (left === undefined || left.length === 0) delete endpoint.parameters;
  else endpoint.parameters = left;
}

const PLACE = /^apis\[(\d+)\](?:\.endpoints\[(\d+)\](?:\.parameters\[(\d+)\](?:\.(.*))?)?)?(?:\.(.*))?$/s;

/** @throws Error for a finding that is about no part of an API. */
function remove({ apis, leftOut }: Imported, { path, message }: Finding, removed: Set<object>): void {
  const [, a, e, p, inner = '', rest = ''] = PLACE.exec(path) ?? [];
  const api = apis[Number(a)];
  if (api === undefined) throw new Error(`${path}: ${message}`);
  const endpoint = e === undefined ? undefined : api.endpoints[Number(e)];
  const at = endpoint === undefined ? api.name : `${endpoint.method ?? 'GET'} ${endpoint.path}`;
  const parameter = p === undefined ? undefined : endpoint?.parameters?.[Number(p)];
  const leave = (what: string) => leftOut.push({ what, at, reason: message });
  if (endpoint === undefined) {
    const [key = ''] = /^\w+/.exec(rest) ?? [];
    leave(key === 'headers' || key === 'oauth2' ? `"${key}" of the API ${api.name}` : '');
    if (key === 'oauth2') delete api.oauth2;
    else if (key === 'headers') for (const name of Object.keys(api.headers)) delete api.headers[name];
    else removed.add(api);
  } else if (parameter === undefined) {
    leave('');
    removed.add(endpoint);
  } else if (inner.startsWith('schema')) {
    leave(`the schema of parameter "${parameter.name}"`);
    cut(parameter, inner);
  } else if (parameter.required === true) {
    leave('');
    removed.add(endpoint);
  } else {
    leave(`parameter "${parameter.name}"`);
    removed.add(parameter);
  }
}

/** Takes the member at a path below a parameter out of its schema, or the whole schema. */
function cut(parameter: Record<string, unknown>, path: string): void {
  const keys = [...path.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.[\]]+)/g)].map(([, index, quoted, plain]) =>
    quoted === undefined ? (index ?? plain ?? '') : String(JSON.parse(`"${quoted}"`)),
  );
  const last = keys.pop() ?? '';
  const holder = keys.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    parameter,
  );
  if (isRecord(holder) && Object.hasOwn(holder, last) && keys.length > 0)
    delete (holder as Record<string, unknown>)[last];
  else delete parameter.schema;
  const left = isRecord(parameter.schema) ? Object.keys(parameter.schema).join() : '';
  if (left === '' || (left === 'type' && parameter.in !== 'body')) delete parameter.schema;
}
