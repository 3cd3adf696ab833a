import { type ApiDocument, type Block, listOf } from './document.ts';
import { Inexpressible } from './left-out.ts';
import { unique, variableOf, wordsOf } from './names.ts';

/** The credentials of a request, as a config sends them. */
export interface Scheme {
  /** Headers of the API. */
  readonly headers?: Record<string, string>;
  /** The API's `oauth2` block: the service gets the token by itself. */
  readonly oauth2?: Block;
  /** A parameter of each endpoint. */
  readonly parameter?: Block;
  /** A note for the operator. */
  readonly remark?: string;
}

/** The parts of a client's credentials of OAuth 2.0, each with a variable. */
const PARTS = ['CLIENT_ID', 'CLIENT_SECRET'];

/** Converts a document's security schemes for a config. Values are always variables, never the document's examples. */
export class Credentials {
  readonly #document: ApiDocument;
  readonly #api: string;
  readonly #schemes: Block;
  /** The words for each scheme in names of variables. No two schemes share them. */
  readonly #words = new Map<string, string>();

  constructor(document: ApiDocument, api: string) {
    this.#document = document;
    this.#api = api;
    const { components, securityDefinitions } = document.root;
    this.#schemes = document.block(securityDefinitions ?? document.block(components).securitySchemes);
    const taken = new Set(Object.keys(this.#schemes).flatMap((key) => PARTS.map((part) => wordsOf(`${key}_${part}`))));
    for (const name of Object.keys(this.#schemes)) this.#words.set(name, unique(wordsOf(name), taken, '_'));
  }

  variable(name: string, ...parts: readonly string[]): string {
    return variableOf(this.#api, this.#words.get(name) ?? name, ...parts);
  }

  /**
   * Returns the schemes of an operation's first way in that a config can express.
   * @param requirements the document's list of ways in; each names the schemes that it needs together.
   * @throws Inexpressible if it can express none of them.
   */
  of(requirements: readonly unknown[]): readonly Scheme[] {
    const ways = requirements.map((way) => Object.keys(this.#document.block(way)).map((name) => this.#scheme(name)));
    const possible = ways.find((way) => way.every((scheme) => typeof scheme !== 'string'));
    const reason = ways.flat().find((scheme) => typeof scheme === 'string');
    if (possible === undefined && reason !== undefined) throw new Inexpressible(reason);
    return (possible ?? []).filter((scheme) => typeof scheme !== 'string');
  }

  #scheme(name: string): Scheme | string {
    const scheme = this.#document.block(Object.hasOwn(this.#schemes, name) ? this.#schemes[name] : undefined);
    const variable = this.variable(name);
    const value = `\${${variable}}`;
    const kind = scheme.type === 'http' ? String(scheme.scheme).toLowerCase() : scheme.type;
    if (kind === 'basic')
      return { headers: { Authorization: `Basic ${value}` }, remark: `${variable} is base64 of user:password` };
    const bearer = { headers: { Authorization: `Bearer ${value}` } };
    if (kind === 'bearer') return bearer;
    if (kind === 'oauth2' || kind === 'openIdConnect')
      return this.#client(scheme, name) ?? { ...bearer, remark: `${variable} is a token, which nobody renews` };
    const isKey = kind === 'apiKey' && /^(?:header|query|cookie)$/.test(String(scheme.in));
    if (!isKey || typeof scheme.name !== 'string' || scheme.name === '')
      return `needs the credentials "${name}", of a kind that no config has`;
    if (scheme.in === 'header') return { headers: { [scheme.name]: value } };
    return { parameter: { name: scheme.name, ...(scheme.in === 'cookie' ? { in: 'cookie' } : {}), fixed: value } };
  }

  /** Returns the client credentials of OAuth 2.0, if the document has them. Other flows need a person. */
  #client(scheme: Block, name: string): Scheme | undefined {
    const flows = this.#document.block(scheme.flows);
    const { tokenUrl, scopes } = scheme.flow === 'application' ? scheme : this.#document.block(flows.clientCredentials);
    if (typeof tokenUrl !== 'string' || !/^https:\/\/[^\s@?#\\]+$/.test(tokenUrl) || !URL.canParse(tokenUrl))
      return undefined;
    const [clientId, clientSecret] = PARTS.map((part) => `\${${this.variable(name, part)}}`);
    const [scope] = Object.keys(this.#document.block(scopes));
    const remark = scope === undefined ? {} : { remark: 'add the "scope" of oauth2 that your endpoints need' };
    return { oauth2: { tokenUrl, clientId, clientSecret }, ...remark };
  }
}

/** Matches names of parameters that carry a credential of the operator, whatever their description says. */
const CREDENTIAL =
  /^(?:x-)?(?:api-?key|app-?key|access-?(?:key|token)|auth-?token|authorization|api-?(?:token|secret)|client-?secret|secret-?key|private-?key|pass(?:word|wd)?|subscription-?key|ocp-apim-subscription-key)$/i;

/** The credentials that an operation's security schemes send. */
export interface Security {
  /** Whether there is any credential. */
  readonly hasWay: boolean;
  /** The places and names of the parameters that they set, such as `header x-api-key`; names of headers are in lower case. */
  readonly sent: ReadonlySet<string>;
  /** Returns the name of the variable for a credential. */
  variable(name: string): string;
}

/** Returns whether a parameter is for the operator, not for clients. */
export function isCredential(document: ApiDocument, parameter: Block): boolean {
  const { name, in: place, description } = parameter;
  const words = String(name)
    .replaceAll('_', '-')
    .replace(/([a-z])([A-Z])/g, '$1-$2');
  if (place === 'path' || !CREDENTIAL.test(words)) return false;
  const schema = document.block(parameter.schema ?? parameter);
  // A parameter that filters, chooses or counts is no secret.
  const isFilter = /\bfilter/i.test(String(description ?? '')) || listOf(schema.enum).length > 0;
  return !isFilter && (schema.type ?? 'string') === 'string';
}
