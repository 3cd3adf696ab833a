import type { Tree } from '../../config/yaml.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { Inexpressible } from './left-out.ts';

export type Block = Readonly<Record<string, unknown>>;

/** An operation with what its path and its document say of it, too. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly block: Block;
  /** Those of the operation, and of its path where the operation has no other of that name. */
  readonly parameters: readonly unknown[];
  /** As they stand: for OpenAPI 3 objects, for Swagger 2.0 texts. */
  readonly servers: readonly unknown[];
  readonly security: readonly unknown[];
}

/** References that lead to references. */
const LONGEST_CHAIN = 50;
const METHODS = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query']);
/** Where the library believes the document to be: it has no way of its own to read what stands beside. */
const PLACE = 'openapi:/';

/** Reads a document beside the first one, by its path from there. */
export type ReadNeighbour = (path: string) => Promise<Tree>;

/** Ends an import, as what a document refers to is too much to read. */
export class TooMuch extends Error {}

/** An OpenAPI document (3.0 to 3.2) or a Swagger one (2.0), whose references are followed one at a time. */
export class ApiDocument {
  readonly root: Block;
  readonly #resolve: (pointer: string) => unknown;
  readonly #hasNeighbours: boolean;

  private constructor(root: Block, resolve: (pointer: string) => unknown, hasNeighbours: boolean) {
    this.root = root;
    this.#resolve = resolve;
    this.#hasNeighbours = hasNeighbours;
  }

  /**
   * @param neighbour reads other documents that it refers to; without it references to these lead nowhere.
   * @throws Error for a document of another kind, and TooMuch.
   */
  static async of(tree: Tree, neighbour?: ReadNeighbour): Promise<ApiDocument> {
    const { default: parser } = await import('@apidevtools/swagger-parser');
    const { info } = tree;
    // A number as the version of the API, which the library refuses, is no matter here.
    const about = isRecord(info) ? { info: { ...info, version: String(info.version ?? '') } } : {};
    const root: Block = { paths: {}, ...tree, ...about, ...versionOf(tree) };
    let tooMuch: unknown;
    const read = ({ url }: { url: string }) =>
      neighbour?.(url.startsWith(PLACE) ? url.slice(PLACE.length) : url).catch((error: unknown) => {
        if (error instanceof TooMuch) tooMuch = error;
        throw error;
      });
    const own = { ...{ order: 1, canRead: true, canParse: true }, read, parse: ({ data }: { data: unknown }) => data };
    const none = { file: false, http: false, json: false, yaml: false, text: false, binary: false };
    const options = { resolve: { ...none, external: neighbour !== undefined, own }, parse: { ...none, own } };
    // What cannot be read keeps its reference, which is followed, and refused, where it is needed.
    if (neighbour !== undefined)
      await parser.bundle(PLACE, root as never, { ...options, continueOnError: true }).catch(() => undefined);
    if (tooMuch !== undefined) throw tooMuch;
    const refs = await parser.resolve(PLACE, root as never, { resolve: { ...none, external: false } });
    return new ApiDocument(root, (pointer) => refs.get(pointer), neighbour !== undefined);
  }

  get isSwagger(): boolean {
    return this.root.swagger !== undefined;
  }

  /** A value, or what its reference leads to. @throws Inexpressible for a reference that leads nowhere in the document. */
  follow(value: unknown): unknown {
    let found = value;
    for (let hops = 0; isRecord(found) && typeof found.$ref === 'string'; hops++) {
      const { $ref } = found;
      if (!$ref.startsWith('#'))
        throw new Inexpressible(
          `refers to another document, which ${this.#hasNeighbours ? 'could not be read' : 'was not read: see --refs'}`,
        );
      if (hops === LONGEST_CHAIN) throw new Inexpressible('has a reference that leads to itself');
      try {
        found = this.#resolve($ref);
      } catch {
        throw new Inexpressible('has a reference that leads nowhere');
      }
    }
    return found;
  }

  /** A mapping, or the one that a reference leads to; an empty one in the place of anything else. @throws Inexpressible */
  block(value: unknown): Block {
    const found = this.follow(value);
    return isRecord(found) ? found : {};
  }

  /** In the order of the document. @param failed is told of paths that cannot be read. */
  operations(failed: (at: string, error: unknown) => void): Operation[] {
    return Object.entries(this.block(this.root.paths)).flatMap(([path, value]) => {
      if (path.startsWith('x-')) return [];
      try {
        const item = this.block(value);
        const own = Object.entries(item).filter(([method]) => METHODS.has(method));
        // Since OpenAPI 3.2 a path may have methods of other names.
        return [...own, ...Object.entries(this.block(item.additionalOperations))].flatMap(([method, block]) =>
          isRecord(block) ? [this.#operation(method.toUpperCase(), path, block, item)] : [],
        );
      } catch (error) {
        failed(path, error);
        return [];
      }
    });
  }

  #operation(method: string, path: string, block: Block, item: Block): Operation {
    const servers = this.isSwagger ? this.#hosts(block) : (block.servers ?? item.servers ?? this.root.servers);
    return {
      ...{ method, path, block },
      parameters: [...listOf(block.parameters), ...listOf(item.parameters)],
      servers: listOf(servers),
      security: listOf(block.security ?? this.root.security),
    };
  }

  /** The one server of a Swagger document, of whose schemes the safest counts. */
  #hosts({ schemes = this.root.schemes }: Block): string[] {
    const { host, basePath = '/' } = this.root;
    if (typeof host !== 'string') return [String(basePath)];
    const scheme = listOf(schemes).includes('http') && !listOf(schemes).includes('https') ? 'http' : 'https';
    return [`${scheme}://${host}${basePath}`];
  }
}

/**
 * The version as the library knows it, which reads no other: it only follows references, and these are the same in all.
 * @throws Error for another version, and for what is no such document.
 */
function versionOf({ swagger, openapi }: Tree): Block {
  if (swagger !== undefined && /^2(?:\.0)?$/.test(String(swagger))) return { swagger: '2.0' };
  if (swagger === undefined && /^3(?:\.[012](?:\.\d+)?)?$/.test(String(openapi)))
    return { openapi: /^3(?:\.0|$)/.test(String(openapi)) ? '3.0.3' : '3.1.0' };
  const version = swagger ?? openapi;
  const read = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
  if (typeof version !== 'string' && typeof version !== 'number')
    throw new Error(`has neither "openapi" nor "swagger" with a version: ${read}`);
  throw new Error(`${swagger === undefined ? 'OpenAPI' : 'Swagger'} ${String(version).slice(0, 20)}: ${read}`);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
