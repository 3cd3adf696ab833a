import type { Tree } from '../../config/yaml.ts';
import { isLoopback } from '../../lib/http/target.ts';
import { bodyOf } from './body.ts';
import { CredentialGuard, type Security } from './credential-guard.ts';
import { Credentials } from './credentials.ts';
import { ApiDocument, type Block, type Operation, type ReadNeighbour } from './document.ts';
import { Inexpressible, type LeftOut } from './left-out.ts';
import { mediaHeadersOf } from './media.ts';
import { nameOf, unique } from './names.ts';
import { parametersOf } from './parameters.ts';
import { answerOf, suggestionsOf } from './suggestions.ts';
import { encoded, literal, sentence } from './text.ts';

/** An endpoint as it will stand in the file. */
export interface ImportedEndpoint {
  readonly name: string;
  readonly description?: string;
  readonly path: string;
  readonly method?: string;
  parameters?: Record<string, unknown>[];
}

export interface ImportedApi {
  readonly name: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  oauth2?: Block;
  readonly auth: Block;
  readonly endpoints: ImportedEndpoint[];
}

export interface Imported {
  readonly apis: ImportedApi[];
  readonly leftOut: LeftOut[];
  /** Encodings that an operator may choose from. */
  readonly suggestions: ReadonlyMap<ImportedEndpoint, readonly Block[]>;
  /** What operators should know beside. */
  readonly remarks: ReadonlySet<string>;
  /** All operations of the document, wanted or not, such as `GET /pets`. */
  readonly operations: ReadonlySet<string>;
  /** As it calls itself. */
  readonly title: string;
}

export interface ImportOptions {
  /** The upstream, in place of the servers of the document. */
  readonly url?: string | undefined;
  /** What relative servers are relative to. */
  readonly base?: string | undefined;
  /** Reads other documents that it refers to; without it they are not read. */
  readonly neighbour?: ReadNeighbour | undefined;
  /** Whether the operator wants an operation. */
  wants(method: string, path: string, name: string): boolean;
}

/** The API that an endpoint belongs to, and how the endpoint shows who asks. */
interface Access extends Security {
  readonly api: ImportedApi;
  /** Parameters that carry credentials. */
  readonly own: readonly Block[];
}

/** Of clients: an API whose credentials are the operator's is not for everyone. */
const AUTH = { type: 'apiKey', keys: ['$' + '{CLIENT_KEY}'] };
const CONFIGURABLE = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const PRIVATE = /^(?:0\.|10\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cde])/;

/** Makes APIs and endpoints of a document. What a config cannot say is listed, with the reason. */
export class Conversion implements Imported {
  readonly apis: ImportedApi[] = [];
  readonly leftOut: LeftOut[] = [];
  readonly suggestions = new Map<ImportedEndpoint, readonly Block[]>();
  readonly remarks = new Set<string>();
  readonly operations = new Set<string>();
  readonly title: string;
  readonly #document: ApiDocument;
  readonly #options: ImportOptions;
  readonly #credentials: Credentials;
  readonly #name: string;
  readonly #apiNames = new Set<string>();
  readonly #names = new Map<ImportedApi, Set<string>>();

  constructor(document: ApiDocument, options: ImportOptions) {
    const { title } = document.block(document.root.info);
    this.#document = document;
    this.#options = options;
    this.title = sentence(title) ?? 'an API';
    this.#name = nameOf(String(title ?? '').toLowerCase(), 'api');
    this.#credentials = new Credentials(document, this.#name);
    for (const operation of document.operations((at, error) => this.#fail(at, error))) this.#add(operation);
  }

  #fail(at: string, error: unknown): void {
    if (!(error instanceof Inexpressible)) throw error;
    this.leftOut.push({ what: '', at, reason: error.message });
  }

  #add(operation: Operation): void {
    const { method, path, block } = operation;
    const { operationId, deprecated } = block;
    this.operations.add(`${method} ${literal(encoded(path))}`);
    const name = nameOf(
      typeof operationId === 'string' ? operationId : '',
      nameOf(`${method.toLowerCase()}-${path}`, 'endpoint'),
    );
    if (!this.#options.wants(method, path, name)) return;
    const at = `${method} ${path}`;
    try {
      if (!CONFIGURABLE.has(method)) throw new Inexpressible(`the method ${method} cannot be configured`);
      const answer = answerOf(this.#document, operation);
      const access = this.#accessOf(operation, at);
      const endpoint = this.#endpoint(operation, name, access, answer.type);
      access.api.endpoints.push(endpoint);
      const found = suggestionsOf(this.#document, answer.schema);
      if (found.length > 0) this.suggestions.set(endpoint, found);
      if (deprecated === true)
        this.leftOut.push({ what: 'the mark "deprecated"', at, reason: 'has no place in a config' });
    } catch (error) {
      this.#fail(at, error);
    }
  }

  #endpoint(operation: Operation, name: string, access: Access, answer: string | undefined): ImportedEndpoint {
    const { method, path, block } = operation;
    const { api, own } = access;
    const note = (what: string, reason: string) => this.leftOut.push({ what, at: `${method} ${path}`, reason });
    const guard = new CredentialGuard(this.#document, access, (key) => this.#credentials.variable(key));
    const body = bodyOf(this.#document, operation, note);
    const parameters = [
      ...parametersOf(this.#document, operation, guard, note),
      ...mediaHeadersOf(this.#document, operation, { answer, body: body.type }, note),
      ...own,
      ...body.parameters,
    ];
    const description = sentence(block.summary, block.description);
    const names = this.#names.get(api) ?? new Set();
    this.#names.set(api, names);
    return {
      name: unique(name, names),
      ...(description === undefined ? {} : { description: literal(description) }),
      path: literal(encoded(path)),
      ...(method === 'GET' ? {} : { method }),
      ...(parameters.length === 0 ? {} : { parameters }),
    };
  }

  /** The API of an operation's server, with the operation's credentials. */
  #accessOf(operation: Operation, at: string): Access {
    const url = this.#urlOf(operation);
    let api = this.apis.find((each) => each.url === url);
    if (api === undefined) {
      api = { name: unique(this.#name, this.#apiNames), url, headers: {}, auth: AUTH, endpoints: [] };
      this.apis.push(api);
    }
    const schemes = this.#credentials.of(operation.security);
    if (typeof schemes === 'string') {
      this.leftOut.push({ what: 'its security', at, reason: schemes });
      return { api, own: [], hasWay: false, isSent: isSentBy(api, []) };
    }
    if (schemes.length > 0 && operation.security.length > 1)
      this.leftOut.push({
        what: 'its security',
        at,
        reason: 'has several ways, of which the first possible one is taken',
      });
    for (const { headers = {}, oauth2, remark } of schemes) {
      const isTaken =
        (oauth2 !== undefined && hasHeader(api, 'authorization')) ||
        (api.oauth2 !== undefined && headers.Authorization !== undefined);
      const clashes = Object.entries(headers).some(
        ([name, value]) => hasHeader(api, name) && api.headers[name] !== value,
      );
      if ((isTaken && oauth2?.tokenUrl !== api.oauth2?.tokenUrl) || clashes) {
        this.leftOut.push({
          what: 'its security',
          at,
          reason: 'differs from that of other endpoints, whose header is sent',
        });
        continue;
      }
      if (oauth2 !== undefined) api.oauth2 ??= oauth2;
      Object.assign(api.headers, headers);
      if (remark !== undefined) this.remarks.add(remark);
    }
    const own = schemes.flatMap(({ parameter }) => (parameter === undefined ? [] : [parameter]));
    return { api, own, hasWay: schemes.length > 0, isSent: isSentBy(api, own) };
  }

  /** @throws Inexpressible */
  #urlOf({ servers: [server = '/', another] }: Operation): string {
    const { url = '/', variables } = typeof server === 'string' ? { url: server } : this.#document.block(server);
    const values = this.#document.block(variables);
    const filled = String(url).replace(/\{([^{}]*)\}/g, (all, name: string) => {
      const { default: fallback } = this.#document.block(Object.hasOwn(values, name) ? values[name] : undefined);
      return fallback === undefined ? all : String(fallback);
    });
    if (another !== undefined)
      this.leftOut.push({ what: 'servers', at: 'the document', reason: 'only the first of several is taken' });
    const { url: chosen, base } = this.#options;
    if (chosen !== undefined) return literal(chosen.replace(/\/$/, ''));
    if (!URL.canParse(filled, base))
      throw new Inexpressible('has no server with a whole URL: say where it is, with --url https://…');
    const target = new URL(filled, base);
    if (target.username !== '' || target.password !== '') {
      this.leftOut.push({ what: 'the user name in the URL of the server', at: target.host, reason: 'is left out' });
      target.username = target.password = '';
    }
    if (isLoopback(target.hostname) || PRIVATE.test(target.hostname))
      this.remarks.add(`the server ${target.host} is this machine, or in a private network`);
    return literal(target.href.replace(/\/$/, ''));
  }
}

function isSentBy(api: ImportedApi, own: readonly Block[]): Access['isSent'] {
  return (place, name) =>
    place === 'header'
      ? hasHeader(api, name) || (api.oauth2 !== undefined && name.toLowerCase() === 'authorization')
      : own.some((parameter) => parameter.name === literal(name) && (parameter.in ?? 'query') === place);
}

function hasHeader({ headers }: ImportedApi, name: string): boolean {
  return Object.keys(headers).some((each) => each.toLowerCase() === name.toLowerCase());
}

/** @throws Error for a document of another kind. */
export async function convert(tree: Tree, options: ImportOptions): Promise<Imported> {
  return new Conversion(await ApiDocument.of(tree, options.neighbour), options);
}
