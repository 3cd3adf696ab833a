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

/** An OpenAPI document (3.0 to 3.2) or a Swagger one (2.0), whose references are followed one at a time. */
export class ApiDocument {
  readonly root: Block;
  readonly #merged = new WeakMap<Block, Block>();

  /** @throws Error for a document of another kind. */
  constructor(root: Block) {
    checkVersion(root);
    this.root = root;
  }

  get isSwagger(): boolean {
    return this.root.swagger !== undefined;
  }

  /** A value, or what its reference leads to. @throws Inexpressible for a reference that leads nowhere in the document. */
  follow(value: unknown, hops = 0): unknown {
    if (!isRecord(value) || typeof value.$ref !== 'string') return value;
    if (hops === LONGEST_CHAIN) throw new Inexpressible('has a reference that leads to itself');
    if (!value.$ref.startsWith('#'))
      throw new Inexpressible('refers to another document: bundle them, such as with npx @redocly/cli bundle');
    return this.follow(this.#at(value.$ref), hops + 1);
  }

  /** What a JSON pointer names. @throws Inexpressible */
  #at(pointer: string): unknown {
    let found: unknown = this.root;
    for (const step of pointer.split('/').slice(1)) {
      const key = unescaped(step).replaceAll('~1', '/').replaceAll('~0', '~');
      if (!Object.hasOwn(Object(found), key)) throw new Inexpressible('has a reference that leads nowhere');
      found = Object(found)[key];
    }
    return found;
  }

  /** A mapping, or the one that a reference leads to; an empty one in the place of anything else. @throws Inexpressible */
  block(value: unknown): Block {
    const found = this.follow(value);
    if (!isRecord(found)) return {};
    if (!('<<' in found)) return found;
    const merged = this.#merged.get(found) ?? this.#merge(found);
    this.#merged.set(found, merged);
    return merged;
  }

  /** With the members that the key `<<` names: YAML 1.1 had it, and many documents are written so. The first one wins. */
  #merge({ '<<': others, ...own }: Block): Block {
    return Object.assign(
      {},
      ...[others]
        .flat()
        .toReversed()
        .map((other) => this.block(other)),
      own,
    );
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

/** @throws Error for a version that is not read, and for what is no such document. */
function checkVersion({ swagger, openapi }: Block): void {
  const version = swagger ?? openapi;
  const isRead = swagger === undefined ? /^3(?:\.[012](?:\.\d+)?)?$/ : /^2(?:\.0)?$/;
  if (isRead.test(String(version))) return;
  const read = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
  if (typeof version !== 'string' && typeof version !== 'number')
    throw new Error(`has neither "openapi" nor "swagger" with a version: ${read}`);
  throw new Error(`${swagger === undefined ? 'OpenAPI' : 'Swagger'} ${String(version).slice(0, 20)}: ${read}`);
}

/** A pointer is part of a URL; one that is none is taken as it is. */
function unescaped(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
