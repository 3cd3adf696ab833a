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

/** An endpoint in the form of the config file. */
export interface ImportedEndpoint {
  readonly name: string;
  readonly description?: string;
  readonly path: string;
  readonly method?: string;
  readonly bodyType?: 'form';
  parameters: Record<string, unknown>[];
}

/** An API in the form of the config file. */
export interface ImportedApi {
  readonly name: string;
  readonly url: string;
  headers: Record<string, string>;
  oauth2?: Block;
  readonly auth: Block;
  endpoints: ImportedEndpoint[];
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

/** The auth for clients: an API that uses the operator's credentials must not be open to everyone. */
const AUTH = { type: 'apiKey', keys: ['$' + '{CLIENT_KEY}'] };
const CONFIGURABLE = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const PRIVATE = /^(?:0\.|10\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[f[cde])/;

/** Converts a document into APIs and endpoints. Parts that a config cannot express are listed, with the reason. */
export class Conversion {
  apis: ImportedApi[] = [];
  leftOut: LeftOut[] = [];
  /** Encodings that an operator may choose, by endpoint. */
  readonly suggestions = new Map<ImportedEndpoint, readonly Block[]>();
  /** The credentials that an endpoint's requests carry. */
  readonly schemes = new Map<ImportedEndpoint, readonly Scheme[]>();
  /** Further notes for operators. */
  readonly remarks = new Set<string>();
  /** The document's own title. */
  readonly title: string;
  readonly #document: ApiDocument;
  readonly #options: ImportOptions;
  readonly #credentials: Credentials;
  readonly #name: string;
  readonly #apiNames = new Set<string>();
  /** The names of endpoints, by the URL of their API. */
  readonly #endpointNames = new Map<string, Set<string>>();

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
      // The draft keeps an operation that is left out from adding its credentials to the API.
      const draft = { ...api, headers: { ...api.headers } };
      const endpoint = this.#endpoint(operation, name, draft, answer);
      Object.assign(api, draft).endpoints.push(endpoint);
    });
  }

  #endpoint(operation: Operation, name: string, api: ImportedApi, answer: Answer): ImportedEndpoint {
    const { method, path, block } = operation;
    const note = (what: string, reason: string) => this.leftOut.push({ what, at: `${method} ${path}`, reason });
    const schemes = this.#schemesOf(operation, api, note);
    const own = schemes.flatMap(({ parameter }) => (parameter === undefined ? [] : [parameter]));
    const security: Security = {
      hasWay: schemes.length > 0,
      sent: new Set([
        ...[...sentBy(api).keys()].map((key) => `header ${key}`),
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
    const endpoint: ImportedEndpoint = {
      name: unique(name, this.#endpointNames.get(api.url) ?? new Set()),
      ...(description === undefined ? {} : { description }),
      path: encoded(path),
      ...(method === 'GET' ? {} : { method }),
      ...(body.isForm ? { bodyType: 'form' } : {}),
      parameters,
    };
    this.schemes.set(endpoint, schemes);
    const suggest = () => suggestionsOf(this.#document, answer.schema);
    this.suggestions.set(endpoint, unlessInexpressible('its answer', false, note, suggest).flat());
    return endpoint;
  }

  #apiAt(url: string): ImportedApi {
    const known = this.apis.find((each) => each.url === url);
    if (known !== undefined) return known;
    const api = { name: unique(this.#name, this.#apiNames), url, headers: {}, auth: AUTH, endpoints: [] };
    this.#endpointNames.set(url, new Set());
    this.apis.push(api);
    return api;
  }

  /** Returns an operation's credentials. Those that the API sends for all of its endpoints are added to the API. */
  #schemesOf({ security }: Operation, api: ImportedApi, note: Note): readonly Scheme[] {
    const [schemes = []] = unlessInexpressible('its security', false, note, () => this.#credentials.of(security));
    if (schemes.length > 0 && security.length > 1)
      note('its security', 'has several ways, of which the first possible one is taken');
    return schemes.map((scheme) => {
      if (differs(api, scheme)) {
        note('its security', 'differs from that of other endpoints, whose header is sent');
        return {};
      }
      if (scheme.oauth2 !== undefined) api.oauth2 ??= scheme.oauth2;
      Object.assign(api.headers, scheme.headers);
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
function sentBy({ headers, oauth2 }: Scheme): Map<string, unknown> {
  const all = { ...headers, ...(oauth2 && { authorization: oauth2.clientId }) };
  return new Map(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Returns whether an API already sends another value in a header of this scheme. */
function differs(api: ImportedApi, scheme: Scheme): boolean {
  const before = sentBy(api);
  return [...sentBy(scheme)].some(([name, value]) => before.has(name) && before.get(name) !== value);
}
