import querystring from 'node:querystring';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { Inexpressible, type Note, unlessInexpressible } from './left-out.ts';
import { literal, unescaped } from './text.ts';

/** A mapping of a document. */
export type Block = Readonly<Record<string, unknown>>;

/** An operation, with the values that it inherits from its path and its document. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly block: Block;
  /** The parameters of the operation, then those of its path: the first of a name counts. */
  readonly parameters: readonly unknown[];
  /** The servers as written: objects in OpenAPI 3, texts for Swagger 2.0. */
  readonly servers: readonly unknown[];
  readonly security: readonly unknown[];
}

/** The longest chain of references. */
const LONGEST_CHAIN = 50;
/** The methods of operations. */
export const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE', 'QUERY'];

/**
 * An OpenAPI document (3.0 to 3.2) or a Swagger document (2.0). References are resolved one at a time, when needed. Its texts are
 * escaped, so that a config that is made of them names no variable that the document chose.
 */
export class ApiDocument {
  readonly root: Block;

  /** @throws Error for a document of another kind. */
  constructor(root: Block) {
    checkVersion(root);
    // Keys are escaped, too: they become values of a config.
    this.root = JSON.parse(literal(JSON.stringify(root)), withMerged);
  }

  get isSwagger(): boolean {
    return this.root.swagger !== undefined;
  }

  /** Returns a value, or the target of its reference. @throws Inexpressible for a reference without a target in the document. */
  follow(value: unknown, hops = 0): unknown {
    if (!isRecord(value) || typeof value.$ref !== 'string') return value;
    if (hops === LONGEST_CHAIN) throw new Inexpressible('has a reference that leads to itself');
    if (!value.$ref.startsWith('#'))
      throw new Inexpressible('refers to another document: bundle them, such as with npx @redocly/cli bundle');
    return this.follow(this.#at(value.$ref), hops + 1);
  }

  /** Returns the value at a JSON pointer. @throws Inexpressible */
  #at(pointer: string): unknown {
    let found: unknown = this.root;
    for (const step of pointer.replace(/^#\//, '').split('/')) {
      // A pointer is part of a URL. Invalid encodings stay as they are.
      const plain = querystring.unescape(unescaped(step)).replaceAll('~1', '/').replaceAll('~0', '~');
      const key = literal(plain);
      if (!Object.hasOwn(Object(found), key)) throw new Inexpressible('has a reference that leads nowhere');
      found = Object(found)[key];
    }
    return found;
  }

  /** Returns a mapping, or the one that a reference names; an empty one for any other value. @throws Inexpressible */
  block(value: unknown): Block {
    const found = this.follow(value);
    return isRecord(found) ? found : {};
  }

  /** Returns all operations in the document's order. @param fail notes the paths that cannot be read. */
  operations(fail: Note): Operation[] {
    const paths = Object.entries(this.block(this.root.paths)).filter(([path]) => !path.startsWith('x-'));
    return paths.flatMap(([path, item]) =>
      unlessInexpressible(path, false, fail, () => this.#operationsAt(path, this.#whole(item), fail)).flat(),
    );
  }

  /** Returns the members that a reference names, and those beside it, which win: a merge key brings both. @throws Inexpressible */
  #whole(value: unknown): Block {
    return { ...this.block(value), ...(isRecord(value) && value) };
  }

  #operationsAt(path: string, item: Block, fail: Note): Operation[] {
    const own = Object.entries(item).filter(([method]) => METHODS.includes(method.toUpperCase()));
    // Since OpenAPI 3.2, a path may have methods of any name.
    return [...own, ...Object.entries(this.block(item.additionalOperations))].flatMap(([name, block]) => {
      if (!isRecord(block)) return [];
      const method = name.toUpperCase();
      const operation = () => this.#operation(method, path, this.#whole(block), item);
      return unlessInexpressible(`${method} ${path}`, false, fail, operation);
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

  /** Returns the only server of a Swagger document, with https unless it has only http. */
  #hosts({ schemes = this.root.schemes }: Block): string[] {
    const { host, basePath } = this.root;
    const path = String(basePath || '/');
    if (typeof host !== 'string' || host === '') return [path];
    const scheme = listOf(schemes).includes('http') && !listOf(schemes).includes('https') ? 'http' : 'https';
    // Authors also write a whole URL as the host, and a path without its first slash.
    const server = host.includes('://') ? host : `${scheme}://${host}`;
    return [`${server.replace(/\/$/, '')}/${path.replace(/^\/+/, '')}`];
  }
}

/** Adds the members under the merge key `<<`, which is of YAML 1.1 but common in documents. The first mapping wins. */
function withMerged(_key: string, value: unknown): unknown {
  if (!isRecord(value) || !('<<' in value)) return value;
  const { '<<': others, ...own } = value;
  return Object.assign({}, ...[others].flat().filter(isRecord).toReversed(), own);
}

/** Checks the version. @throws Error for a version that is not supported, and for any other document. */
function checkVersion({ swagger, openapi }: Block): void {
  const version = swagger ?? openapi;
  const isRead = swagger === undefined ? /^3(?:\.[012](?:\.\d+)?)?$/ : /^2(?:\.0)?$/;
  if (isRead.test(String(version))) return;
  const read = 'import reads OpenAPI 3.0, 3.1 and 3.2, and Swagger 2.0';
  if (typeof version !== 'string' && typeof version !== 'number')
    throw new Error(`has neither "openapi" nor "swagger" with a version: ${read}`);
  throw new Error(`${swagger === undefined ? 'OpenAPI' : 'Swagger'} ${String(version).slice(0, 20)}: ${read}`);
}

/** Returns a list; an empty one for any other value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
