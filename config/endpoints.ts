import type { AuthMethod } from '../kernel/values.ts';
import { type EndpointDraft, errorAt, type Finding } from '../plugins-sdk/define.ts';
import { childPath, isRecord } from '../plugins-sdk/schema/path.ts';

type Block = Readonly<Record<string, unknown>>;

interface Named {
  readonly block: Block;
  readonly path: string;
}

/** Returns those items of a list that are mappings, each with its config path. */
function blocks(list: unknown, path: string): Named[] {
  const items: readonly unknown[] = Array.isArray(list) ? list : [];
  return items.flatMap((block, index) => (isRecord(block) ? [{ block, path: childPath(path, index) }] : []));
}

function endpointBlocks({ block, path }: Named): Named[] {
  return blocks(block.endpoints, `${path}.endpoints`);
}

/** Returns the endpoints in a config, each with its API. */
export function endpointsIn(config: unknown): (Named & { readonly api: Named })[] {
  return blocks(Object(config).apis, 'apis').flatMap((api) => endpointBlocks(api).map((each) => ({ ...each, api })));
}

/** Returns the parameters in a config, each with its endpoint. */
export function parametersIn(config: unknown): (Named & { readonly endpoint: Block })[] {
  return endpointsIn(config).flatMap(({ block: endpoint, path }) =>
    blocks(endpoint.parameters, `${path}.parameters`).map((parameter) => ({ ...parameter, endpoint })),
  );
}

/** Returns the names of APIs and endpoints in a config, by their config paths. */
export function namesIn(config: Block): ReadonlyMap<string, string> {
  const named = blocks(config.apis, 'apis').flatMap((api) => [api, ...endpointBlocks(api)]);
  return new Map(named.flatMap(({ block: { name }, path }) => (typeof name === 'string' ? [[path, name]] : [])));
}

/** Returns the endpoints of a config. Leaves out those with a value of a wrong shape in the endpoint or its API. */
export function draftEndpoints(config: Block, wrongShapes: readonly Finding[]): EndpointDraft[] {
  const broken = new Set(wrongShapes.map(({ path }) => ownerOf(path)));
  const isWhole = ({ path }: Named) => !broken.has(path) && !broken.has('');
  return endpointsIn(config)
    .filter((endpoint) => isWhole(endpoint) && isWhole(endpoint.api))
    .map((endpoint) => draft(endpoint.api.block, endpoint));
}

/** Returns the path of the endpoint or API that a path lies in; `''` for the list of APIs, `elsewhere` for any other path. */
export function ownerOf(path: string): string {
  return /^apis\[\d+\](?:\.endpoints\[\d+\])?/.exec(path)?.[0] ?? (path === 'apis' ? '' : 'elsewhere');
}

function draft(apiBlock: Block, { block, path }: Named): EndpointDraft {
  return {
    api: String(apiBlock.name),
    name: String(block.name),
    mode: typeof block.mode === 'string' ? block.mode : 'sync',
    auth: Object.freeze([block.auth ?? apiBlock.auth ?? { type: 'free' }].flat().filter(isAuthMethod)),
    block,
    apiBlock,
    path,
  };
}

function isAuthMethod(value: unknown): value is AuthMethod {
  return isRecord(value) && typeof value.type === 'string';
}

/** Checks what the schema cannot express about the names of APIs and endpoints: they are unique and printable. */
export function checkNames(config: Block, isDoubtful: (path: string) => boolean): Finding[] {
  const apis = blocks(config.apis, 'apis');
  return [
    ...checkSiblings(apis, 'API', isDoubtful),
    ...apis.flatMap((api) => checkSiblings(endpointBlocks(api), 'endpoint', isDoubtful)),
  ];
}

function checkSiblings(siblings: readonly Named[], kind: string, isDoubtful: (path: string) => boolean): Finding[] {
  const seen = new Set<string>();
  return siblings.flatMap(({ block: { name }, path }) => {
    const at = `${path}.name`;
    if (typeof name !== 'string' || name === '' || isDoubtful(at)) return [];
    if (/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(name))
      return [errorAt(at, 'must not contain control characters or line breaks')];
    const double = seen.has(name);
    seen.add(name);
    return double ? [errorAt(at, `there is another ${kind} with the name "${name}"`)] : [];
  });
}
