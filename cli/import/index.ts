import { ConfigErrors } from '../../config/findings.ts';
import { loadConfig } from '../../config/load.ts';
import type { Tree } from '../../config/yaml.ts';
import type { Finding } from '../../plugins-sdk/define.ts';
import { definitions } from '../../service/index.ts';
import { Conversion, type ImportOptions } from './convert.ts';
import { unescaped } from './text.ts';
import { apiBlock } from './write.ts';

/**
 * Converts an OpenAPI document into a config that the service can start with. The environment and files have no influence.
 * @throws Error for a document of another kind.
 */
export async function importDocument(tree: Tree, options: ImportOptions): Promise<Conversion> {
  const imported = new Conversion(tree, options);
  const ofDocument = tree.swagger === undefined ? 'servers[0].url' : 'basePath';
  await repair(imported, options.url === undefined ? ofDocument : '--url');
  const used = imported.apis.flatMap(({ endpoints }) => endpoints).flatMap(({ schemes }) => schemes);
  for (const { remark } of used) if (remark !== undefined) imported.remarks.add(remark);
  imported.leftOut = JSON.parse(unescaped(JSON.stringify(imported.leftOut)));
  return imported;
}

/** The most rounds of checks. Each removes at least one part, mostly all faulty ones. */
const MOST_ROUNDS = 50;

/**
 * Removes the parts that the service would refuse: a schema, a parameter, an endpoint or an API. Each is listed with the
 * text of the refusal. A valid config is left.
 * @param source the origin of the APIs' URLs, for texts.
 */
async function repair(imported: Conversion, source: string): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    imported.apis = imported.apis.filter(({ endpoints }) => endpoints.length > 0);
    const { apis } = imported;
    const errors = apis.length === 0 ? [] : await errorsIn({ version: '1.0', apis: apis.map(apiBlock) });
    if (errors.length === 0) return;
    const removed = new Set<object>();
    for (const error of errors) remove(imported, error, removed, source);
    const isLeft = (part: object) => !removed.has(part);
    imported.apis = imported.apis.filter(isLeft);
    for (const api of imported.apis) {
      api.endpoints = api.endpoints.filter(isLeft);
      for (const endpoint of api.endpoints) endpoint.parameters = endpoint.parameters.filter(isLeft);
    }
  }
  throw new Error('the document cannot be made a config: there is always more that is wrong');
}

const PLACE = /^apis\[(\d+)\](?:\.endpoints\[(\d+)\](?:\.parameters\[(\d+)\])?)?(?:\.(\w+))?/;

/** Removes the part that a finding is about. @throws Error for a finding outside the APIs. */
function remove({ apis, leftOut }: Conversion, { path, message }: Finding, removed: Set<object>, source: string): void {
  const [, a, e, p, key = ''] = PLACE.exec(path) ?? [];
  const api = apis[Number(a)];
  if (api === undefined) throw new Error(`${path}: ${message}`);
  const endpoint = e === undefined ? undefined : api.endpoints[Number(e)];
  const parameter = p === undefined ? undefined : endpoint?.parameters[Number(p)];
  const sent = api.endpoints.flatMap(({ schemes }) => schemes.map(({ headers = {} }) => headers));
  const header = sent.flatMap((headers) => Object.keys(headers)).find((name) => path === `apis[${a}].headers.${name}`);
  const at = endpoint === undefined ? api.name : `${endpoint.method ?? 'GET'} ${endpoint.path}`;
  const leave = (what?: string) => leftOut.push({ what, at, reason: message });
  if (parameter !== undefined && key === 'schema') {
    leave(`the schema of parameter "${parameter.name}"`);
    delete parameter.schema;
  } else if (parameter !== undefined && parameter.required !== true) {
    leave(`parameter "${parameter.name}"`);
    removed.add(parameter);
  } else if (endpoint === undefined && header !== undefined) {
    leave(`header "${header}" of the API ${api.name}`);
    for (const headers of sent) delete headers[header];
  } else {
    leave(endpoint === undefined && key === 'url' ? source : undefined);
    removed.add(endpoint ?? api);
  }
}

async function errorsIn(tree: Tree): Promise<readonly Finding[]> {
  try {
    await loadConfig({ file: '/config.yaml', tree, env: {}, builtins: definitions(), allowUnset: true });
    return [];
  } catch (error) {
    if (error instanceof ConfigErrors) return error.findings.filter(({ level }) => level === 'error');
    throw error;
  }
}
