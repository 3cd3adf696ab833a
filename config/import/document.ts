import { isRecord } from '../../plugins-sdk/schema/path.ts';
import type { Tree } from '../yaml.ts';
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

/** An OpenAPI document (3.0, 3.1) or a Swagger one (2.0), whose references are followed one at a time. */
export class ApiDocument {
  readonly root: Block;
  readonly #resolve: (pointer: string) => unknown;

  private constructor(root: Block, resolve: (pointer: string) => unknown) {
    this.root = root;
    this.#resolve = resolve;
  }

  /**
   * @param neighbour reads other documents that it refers to; without it references to these lead nowhere.
   * @throws Error for a document of another kind.
   */
  static async of(tree: Tree, neighbour?: ReadNeighbour): Promise<ApiDocument> {
    const { default: parser } = await import('@apidevtools/swagger-parser');
    // A number as the version of the API, which the library refuses, is no matter here.
    const info = isRecord(tree.info) ? { ...tree.info, version: String(tree.info.version ?? '') } : tree.info;
    const root: Block = { ...tree, info };
    const own = {
      ...{ order: 1, canRead: true, canParse: true },
      read: ({ url }: { url: string }) => neighbour?.(url.startsWith(PLACE) ? url.slice(PLACE.length) : url),
      parse: ({ data }: { data: unknown }) => data,
    };
    const none = { file: false, http: false, json: false, yaml: false, text: false, binary: false };
    const options = { resolve: { ...none, external: neighbour !== undefined, own }, parse: { ...none, own } };
    try {
      // What cannot be read keeps its reference, which is followed, and refused, where it is needed.
      if (neighbour !== undefined)
        await parser.bundle(PLACE, root as never, { ...options, continueOnError: true }).catch(() => undefined);
      const refs = await parser.resolve(PLACE, root as never, { resolve: { ...none, external: false } });
      return new ApiDocument(root, (pointer) => refs.get(pointer));
    } catch (error) {
      throw new Error(String(Object(error).message).replaceAll(PLACE, 'the document'));
    }
  }

  get isSwagger(): boolean {
    return this.root.swagger !== undefined;
  }

  /** A value, or what its reference leads to. @throws Inexpressible for a reference that leads nowhere in the document. */
  follow(value: unknown): unknown {
    let found = value;
    for (let hops = 0; isRecord(found) && typeof found.$ref === 'string'; hops++) {
      const { $ref } = found;
      if (!$ref.startsWith('#')) throw new Inexpressible('refers to another document, which was not read: see --refs');
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
        return Object.entries(item).flatMap(([method, block]) =>
          METHODS.has(method) && isRecord(block) ? [this.#operation(method.toUpperCase(), path, block, item)] : [],
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

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
