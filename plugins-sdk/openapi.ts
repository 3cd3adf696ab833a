/** The SDK's entry for plugins that describe themselves in the service's OpenAPI document. */

import type { AuthMethod, Endpoint } from '../kernel/values.ts';

/** An object of OpenAPI 3.1 or JSON Schema. */
export type OpenApiObject = Readonly<Record<string, unknown>>;
/** OpenAPI or schema objects by name. */
export type Named = Readonly<Record<string, OpenApiObject>>;

/**
 * A response. Plugins that refuse with the same status share one response, with the descriptions and error texts of all.
 */
export interface DescribedResponse {
  /** Default: the status's name in HTTP. */
  readonly description?: string;
  /** The texts that the `error` of a refusal may hold. */
  readonly errors?: readonly string[];
  /** Schema of a body other than `{error}`. Plugins cannot share such a response. */
  readonly schema?: OpenApiObject;
  /** The body's media type; default `application/json`. */
  readonly mediaType?: string;
  /** Headers besides `X-Request-Id`. A shared response has those that all its plugins name, and those with `required: false`. */
  readonly headers?: Named;
  readonly links?: Named;
  /** Name of the component, for a response that many operations have. */
  readonly name?: string;
}

/** Responses by status. */
export type Responses = Readonly<Record<string, DescribedResponse>>;

/** A plugin's part in the operation of an endpoint. */
export interface DescribedOperation {
  /** Schemas of members of the request's `parameters`, by name. */
  readonly parameters?: Named;
  /** Names of the required members of `parameters`. */
  readonly required?: readonly string[];
  /** Whether a request must have `parameters`, with no other members than plugins name. */
  readonly strict?: boolean;
  /** For the plugin that encodes the answer: the answer's kind in its `answers`, and a description in words. */
  readonly answer?: { readonly kind: string; readonly text: string };
  /** Further notes on the answer. */
  readonly remark?: string;
  /** Headers of the successful response. */
  readonly answerHeaders?: Named;
  /** Refusals before the mode begins. */
  readonly responses?: Responses;
  /** Refusals while the answer is made. A mode may show them in its own way. */
  readonly failures?: Responses;
}

/** The price of a request. */
export interface Price {
  /** Amount in the smallest unit of the token. If it depends on the request, the lowest amount. */
  readonly amount: string;
  /** The highest amount, if it differs. */
  readonly max?: string;
  /** The token's address; the zero address is the chain's own coin. */
  readonly token: string;
  readonly network: string | number;
}

/** The description of an auth type. */
export interface DescribedAuth {
  /** A Security Scheme Object. Without one, the auth type lets everyone in. */
  readonly scheme?: OpenApiObject;
  /** Responses to clients that are refused. */
  readonly responses?: Responses;
  /** Title on a page, such as the explorer's; default the type. */
  readonly title?: string;
  /** Hints to a person who fills in the scheme's header on that page. */
  readonly hints?: readonly string[];
  /** The schema of a header that holds JSON. */
  readonly example?: OpenApiObject;
  /**
   * Returns members of an operation that replace a security requirement, for a credential that a client gets only by asking.
   * @param methods the endpoint's auth objects of this type.
   */
  operation?(methods: readonly AuthMethod[]): OpenApiObject;
  /** Returns prices of a request by one `auth` object, any of which is enough. A page shows them before it asks. */
  prices?(method: AuthMethod): readonly Price[];
}

/** The description of a mode. */
export interface DescribedMode {
  /** Returns the mode's successful responses and its own refusals. @param kind of the answer. @param text describes it. */
  responses(kind: string, text: string): Responses;
  /** Whether the response comes before the answer is made, so that failures are shown elsewhere. */
  readonly early?: boolean;
  /** Returns further schemas of the mode. @param answers the schemas of signed answers, by kind. */
  schemas?(answers: Named): Named;
  /** Text that a page shows behind the mode's name. */
  readonly title?: string;
}

/** The description of a route. */
export interface DescribedRoute {
  readonly method: string;
  /** Path in the syntax of OpenAPI: `/requests/{requestId}`. */
  readonly path: string;
  /** The route's own `admit`. */
  readonly admit: boolean;
  /**
   * An Operation Object without responses; it needs an `operationId`. Without `security` everyone may call it. Without `tags` it
   * gets the service's tag.
   */
  readonly operation: OpenApiObject;
  readonly responses: Responses;
}

/** The service of which a plugin describes a part. */
export interface DescribedService {
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly Endpoint[];
  /** The plugin's own `config`, as `setup` gets it. */
  readonly own: unknown;
}

/** A plugin's part of the OpenAPI document. Of two parts with the same name in them, the later counts. */
export interface OpenApiPart {
  /** Schema components that its other members refer to. */
  readonly schemas?: Named;
  readonly headers?: Named;
  /** Its auth types. */
  readonly auth?: Readonly<Record<string, DescribedAuth>>;
  readonly modes?: Readonly<Record<string, DescribedMode>>;
  readonly routes?: readonly DescribedRoute[];
  /** Members of the Info Object that replace the service's defaults. */
  readonly info?: { readonly title?: string; readonly description?: string; readonly version?: string };
  /** Server Objects; without any, the server is the document's own origin. */
  readonly servers?: readonly OpenApiObject[];
  /** Refusals of the stage `admit`: all operations behind it get them. */
  readonly admit?: Responses;
  /** Kinds of answers that it encodes: for each the schema of the member with the value, by name. */
  readonly answers?: Readonly<Record<string, Named>>;
  /** Whole answers as examples, by kind. */
  readonly examples?: Named;
  /** Members that it adds to every signed answer, with notes on them. */
  readonly signed?: { readonly description?: string; readonly required?: Named; readonly optional?: Named };
  /** Returns its part in an endpoint's operation, if any. */
  operation?(endpoint: Endpoint): DescribedOperation | undefined;
}

/** A service's description, made from its plugins' parts. */
export interface ServiceDescription {
  /** The OpenAPI 3.1 document. */
  readonly document: OpenApiObject;
  readonly auth: ReadonlyMap<string, DescribedAuth>;
  readonly modes: ReadonlyMap<string, DescribedMode>;
  /** Plugins' remarks on endpoints' answers, by endpoint ID. */
  readonly remarks: ReadonlyMap<string, readonly string[]>;
}

/** Returns a reference to a component of the document. */
export function refTo(kind: 'schemas' | 'headers' | 'responses', name: string): OpenApiObject {
  return { $ref: `#/components/${kind}/${name}` };
}

/** Returns the schema of a text that matches a pattern. @param pattern anchored, since JSON Schema matches parts of a text. */
export function textSchema(pattern: string, description: string): OpenApiObject {
  return { type: 'string', pattern, description };
}

/** Returns an object schema. All members are required, except the names in `optional`. */
export function objectSchema(description: string, properties: Named, optional: readonly string[] = []): OpenApiObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', description, required, properties };
}

/** Returns an object schema with further required members in front. */
export function withMembers({ required, properties, ...rest }: OpenApiObject, members: Named): OpenApiObject {
  const others: readonly unknown[] = Array.isArray(required) ? required : [];
  return {
    ...rest,
    required: [...Object.keys(members), ...others],
    properties: { ...members, ...Object(properties) },
  };
}

/** Returns the letters and digits of a text, joined by underscores. */
export function nameOf(label: string): string {
  return label.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

/** The headers of a response that must not be stored. */
export const noStore: Named = { 'Cache-Control': refTo('headers', 'NoStore') };

/** The response to an unexpected error. */
export const internalError: DescribedResponse = {
  name: 'InternalError',
  description: 'Nothing was signed; the log of the service says why',
  errors: ['Internal server error'],
};
