import type { Tree } from '../../config/yaml.ts';
import { isLoopback } from '../../lib/http/target.ts';
import { bodyOf } from './body.ts';
import { Credentials, type Scheme, type Security } from './credentials.ts';
import { ApiDocument, type Block, type Operation } from './document.ts';
import { Inexpressible, type LeftOut, type Note, unlessInexpressible } from './left-out.ts';
import { mediaHeadersOf } from './media.ts';
import { nameOf, unique } from './names.ts';
import { keyOf, parametersOf } from './parameters.ts';
import { type Answer, answerOf, suggestionsOf } from './suggestions.ts';
import { encoded, summary, unescaped } from './text.ts';

/** An endpoint in the form of the config file, but for the last two members. */
export interface ImportedEndpoint {
  readonly name: string;
  readonly description?: string;
  readonly path: string;
  readonly method?: string;
  readonly bodyType?: 'form';
  parameters: Record<string, unknown>[];
  /** The credentials that its requests carry. */
  readonly schemes: readonly Scheme[];
  /** Encodings that an operator may choose. */
  readonly suggestions: readonly Block[];
}

/** An upstream. Its credentials are those of its endpoints. */
export interface ImportedApi {
  readonly name: string;
  readonly url: string;
  endpoints: ImportedEndpoint[];
  /** The names of its endpoints, in lower case. */
  readonly names: Set<string>;
  /** The headers that its requests carry, by their names in lower case. */
  sent: ReadonlyMap<string, unknown>;
}

/** An operator's choices for an import. */
export interface ImportOptions {
  /** The URL of the upstream, in place of the document's servers. */
  readonly url?: string | undefined;
  /** The base URL of relative servers. */
  readonly base?: string | undefined;
  /** Returns whether the operator wants an operation. */
  wants(method: string, path: string, name: string): boolean;
}

const CONFIGURABLE = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const PRIVATE = /^(?:0\.|10\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cde])/;

/** Converts a document into APIs and endpoints. Parts that a config cannot express are listed, with the reason. */
export class Conversion {
  apis: ImportedApi[] = [];
  leftOut: LeftOut[] = [];
  /** Further notes for operators. */
  readonly remarks = new Set<string>();
  /** The document's own title. */
  readonly title: string;
  readonly #document: ApiDocument;
  readonly #options: ImportOptions;
  readonly #credentials: Credentials;
  readonly #name: string;

  /** Notes a whole operation, or all of a path. */
  readonly #fail: Note = (at, reason) => this.leftOut.push({ at, reason });

  /** Converts the whole document. @throws Error for a document of another kind. */
  constructor(tree: Tree, options: ImportOptions) {
    const document = new ApiDocument(tree);
    const { title } = document.block(document.root.info);
    this.#document = document;
    this.#options = options;
    this.title = unescaped(summary(title) ?? 'an API');
    this.#name = nameOf(String(title ?? '').toLowerCase(), 'api');
    this.#credentials = new Credentials(document, this.#name);
    for (const operation of document.operations(this.#fail)) this.#add(operation);
  }

  #add(operation: Operation): void {
    const { method, path, block } = operation;
    const operationId = typeof block.operationId === 'string' ? block.operationId : '';
    const name = nameOf(operationId, nameOf(`${method.toLowerCase()}-${path}`, 'endpoint'));
    if (!this.#options.wants(method, unescaped(path), name)) return;
    unlessInexpressible(`${method} ${path}`, false, this.#fail, () => {
      if (!CONFIGURABLE.has(method)) throw new Inexpressible(`the method ${method} cannot be configured`);
      // An operation without a JSON answer makes no API, whose name another would lack.
      const answer = answerOf(this.#document, operation);
      const api = this.#apiAt(this.#urlOf(operation));
      api.endpoints.push(this.#endpoint(operation, name, api, answer));
    });
  }

  #endpoint(operation: Operation, name: string, api: ImportedApi, answer: Answer): ImportedEndpoint {
    const { method, path, block } = operation;
    const note = (what: string, reason: string) => this.leftOut.push({ what, at: `${method} ${path}`, reason });
    const sent = new Map(api.sent);
    const schemes = this.#schemesOf(operation, sent, note);
    const own = schemes.flatMap(({ parameter }) => (parameter === undefined ? [] : [parameter]));
    const security: Security = {
      hasWay: schemes.length > 0,
      sent: new Set([
        ...[...sent.keys()].map((key) => `header ${key}`),
        ...own.map((each) => keyOf({ in: 'query', ...each })),
      ]),
      variable: (key) => this.#credentials.variable(key),
    };
    const body = bodyOf(this.#document, operation, note);
    const parameters = [
      ...parametersOf(this.#document, operation, security, note),
      ...mediaHeadersOf({ Accept: answer.type, 'Content-Type': body.type }, note),
      ...own,
      ...body.parameters,
    ];
    const free = parameters.filter(({ fixed }) => fixed === undefined).map(({ name }) => String(name));
    for (const name of new Set(free.filter((each, i) => free.indexOf(each) < i)))
      note(`parameter "${name}"`, 'is in several places, which all get the same value');
    const description = summary(block.summary, block.description);
    const suggest = () => suggestionsOf(this.#document, answer.schema);
    // An operation that is left out has thrown by now, and adds no header.
    api.sent = sent;
    return {
      name: unique(name, api.names),
      ...(description === undefined ? {} : { description }),
      path: encoded(path),
      ...(method === 'GET' ? {} : { method }),
      ...(body.isForm ? { bodyType: 'form' } : {}),
      parameters,
      schemes,
      suggestions: unlessInexpressible('its answer', false, note, suggest).flat(),
    };
  }

  #apiAt(url: string): ImportedApi {
    const known = this.apis.find((each) => each.url === url);
    if (known !== undefined) return known;
    const number = this.apis.length + 1;
    const name = number === 1 ? this.#name : `${this.#name}-${number}`;
    const api = { name, url, endpoints: [], names: new Set<string>(), sent: new Map() };
    this.apis.push(api);
    return api;
  }

  /** Returns an operation's credentials. @param sent the headers of its API, to which those of the credentials are added. */
  #schemesOf({ security }: Operation, sent: Map<string, unknown>, note: Note): readonly Scheme[] {
    const [schemes = []] = unlessInexpressible('its security', false, note, () => this.#credentials.of(security));
    if (schemes.length > 0 && security.length > 1)
      note('its security', 'has several ways, of which the first possible one is taken');
    return schemes.map((scheme) => {
      const headers = sentBy(scheme);
      if (headers.some(([name, value]) => sent.has(name) && sent.get(name) !== value)) {
        note('its security', 'differs from that of other endpoints, whose header is sent');
        return {};
      }
      for (const [name, value] of headers) sent.set(name, value);
      return scheme;
    });
  }

  /** Returns the URL of an operation's upstream. @throws Inexpressible when the document has no whole URL. */
  #urlOf({ servers: [server = '/', another] }: Operation): string {
    const { url = '/', variables } = typeof server === 'string' ? { url: server } : this.#document.block(server);
    const values = this.#document.block(variables);
    const filled = String(url).replace(/\{([^{}]*)\}/g, (all, name: string) => {
      const { default: fallback } = this.#document.block(Object.hasOwn(values, name) ? values[name] : undefined);
      return String(fallback ?? all);
    });
    if (another !== undefined)
      this.leftOut.push({ what: 'servers', at: 'the document', reason: 'only the first of several is taken' });
    const { url: chosen, base } = this.#options;
    if (chosen !== undefined) return chosen.replace(/\/$/, '');
    if (/[{}]/.test(filled) || !URL.canParse(filled, base))
      throw new Inexpressible('has no server with a whole URL: say where it is, with --url https://…');
    const target = new URL(filled, base);
    if (target.username !== '' || target.password !== '') {
      this.leftOut.push({ what: 'the user name in the URL of the server', at: target.host, reason: 'is left out' });
      target.username = target.password = '';
    }
    if (isLoopback(target.hostname) || PRIVATE.test(target.hostname))
      this.remarks.add(`the server ${target.host} is this machine, or in a private network`);
    return target.href.replace(/\/$/, '');
  }
}

/** Returns the headers that are sent, with names in lower case. The ID of the client stands for its token of OAuth 2.0. */
function sentBy({ headers, oauth2 }: Scheme): (readonly [name: string, value: unknown])[] {
  const all = { ...headers, ...(oauth2 && { authorization: oauth2.clientId }) };
  return Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]);
}
