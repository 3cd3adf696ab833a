/** For what a plugin says of itself in the OpenAPI document of its service. */

import type { AuthMethod, Endpoint } from './kernel.ts';

/** An object of OpenAPI 3.1 or JSON Schema. */
export type OpenApiObject = Readonly<Record<string, unknown>>;
/** Such objects by name. */
export type Named = Readonly<Record<string, OpenApiObject>>;

/**
 * A response. Where several plugins refuse with one status, they share it: descriptions and texts of all stand in it.
 */
export interface DescribedResponse {
  /** Default: what HTTP calls the status. */
  readonly description?: string;
  /** The texts that the `error` of a refusal may hold. */
  readonly errors?: readonly string[];
  /** Schema of a body that is no `{error}`. Such a response is of one plugin alone. */
  readonly schema?: OpenApiObject;
  /** Default `application/json`. */
  readonly mediaType?: string;
  /** Headers besides `X-Request-Id`. A shared response has those that all have who share it, and those with `required: false`. */
  readonly headers?: Named;
  readonly links?: Named;
  /** Its name among the components of the document, for a response that many operations have. */
  readonly name?: string;
}

/** By status. */
export type Responses = Readonly<Record<string, DescribedResponse>>;

/** What a plugin does at an endpoint. */
export interface DescribedOperation {
  /** Schemas of what the request's `parameters` may hold, by name. */
  readonly parameters?: Named;
  /** Names of those that it must hold. */
  readonly required?: readonly string[];
  /** Whether a request must have `parameters`, and no others than plugins say. */
  readonly strict?: boolean;
  /** For the plugin that encodes the answer: which of its `answers` it is, and in words. */
  readonly answer?: { readonly kind: string; readonly text: string };
  /** Further notes on the answer. */
  readonly remark?: string;
  /** Headers of the response that says that all went well. */
  readonly answerHeaders?: Named;
  /** Refusals before the mode has its turn. */
  readonly responses?: Responses;
  /** Refusals while the answer is made, which a mode may tell in its own way. */
  readonly failures?: Responses;
}

/** What a request costs. */
export interface Price {
  /** In the smallest unit of the token. Where it depends on the request, the least. */
  readonly amount: string;
  /** The most, where that is another. */
  readonly max?: string;
  /** Its address; the zero address is the chain's own coin. */
  readonly token: string;
  readonly network: string | number;
}

/** A type of `auth`. */
export interface DescribedAuth {
  /** A Security Scheme Object; without one it lets everyone in. */
  readonly scheme?: OpenApiObject;
  /** Responses to clients that are refused. */
  readonly responses?: Responses;
  /** What a page calls it; default its type. */
  readonly title?: string;
  /** What a person should know who fills in the header of the scheme on a page. */
  readonly hints?: readonly string[];
  /** The schema of a header that holds JSON. */
  readonly example?: OpenApiObject;
  /** Members of an operation in place of a security requirement: for what no client has before it asks. @param methods of this type. */
  operation?(methods: readonly AuthMethod[]): OpenApiObject;
  /** What a request costs by one `auth` object, as a page says it before it asks; any one is enough. */
  prices?(method: AuthMethod): readonly Price[];
}

/** A mode. */
export interface DescribedMode {
  /** The successful responses of this mode, and its own refusals. @param kind of the answer. */
  responses(kind: string, text: string): Responses;
  /** Whether the response comes before the answer is made, so that failures are told elsewhere. */
  readonly early?: boolean;
  /** Schemas that it needs. @param answers the schema of a signed answer, by kind. */
  schemas?(answers: Named): Named;
  /** What a page says of it, behind its name. */
  readonly title?: string;
}

/** A route. */
export interface DescribedRoute {
  readonly method: string;
  /** In the syntax of OpenAPI: `/requests/{requestId}`. */
  readonly path: string;
  /** As the route itself has it. */
  readonly admit: boolean;
  /** An Operation Object without responses; it needs an `operationId`. Without `security` it is for everyone, without `tags` the service's. */
  readonly operation: OpenApiObject;
  readonly responses: Responses;
}

/** What a plugin may know of the service that it describes. */
export interface DescribedService {
  readonly config: Readonly<Record<string, unknown>>;
  readonly endpoints: readonly Endpoint[];
  /** The plugin's own `config`, as `setup` gets it. */
  readonly own: unknown;
}

/** A plugin's part of the OpenAPI document. No two plugins may claim the same name in it. */
export interface OpenApiPart {
  /** Components that its other members refer to. */
  readonly schemas?: Named;
  readonly headers?: Named;
  /** Its types of `auth`. */
  readonly auth?: Readonly<Record<string, DescribedAuth>>;
  readonly modes?: Readonly<Record<string, DescribedMode>>;
  readonly routes?: readonly DescribedRoute[];
  /** Members of the Info Object in place of the service's own words. */
  readonly info?: { readonly title?: string; readonly description?: string; readonly version?: string };
  /** Server Objects; without any, the server is where the document is. */
  readonly servers?: readonly OpenApiObject[];
  /** Refusals of whatever is behind the stage `admit`. */
  readonly admit?: Responses;
  /** Kinds of answers that it encodes: the member with the value, as schemas by name. */
  readonly answers?: Readonly<Record<string, Named>>;
  /** Whole answers as examples, by kind. */
  readonly examples?: Named;
  /** Members that it adds to every signed answer, and notes on them. */
  readonly signed?: { readonly description?: string; readonly required?: Named; readonly optional?: Named };
  /** What it does at an endpoint, if anything. */
  operation?(endpoint: Endpoint): DescribedOperation | undefined;
}

/** A service's description, made of its plugins' parts. */
export interface ServiceDescription {
  /** OpenAPI 3.1. */
  readonly document: OpenApiObject;
  readonly auth: ReadonlyMap<string, DescribedAuth>;
  readonly modes: ReadonlyMap<string, DescribedMode>;
  /** What plugins remark on the answers of endpoints, by ID. */
  readonly remarks: ReadonlyMap<string, readonly string[]>;
}

/** A reference to a component of the document. */
export function refTo(kind: 'schemas' | 'headers' | 'responses', name: string): OpenApiObject {
  return { $ref: `#/components/${kind}/${name}` };
}

/** Schema of a text that matches `pattern` as a whole. */
export function textSchema(pattern: string, description: string): OpenApiObject {
  return { type: 'string', pattern, description };
}

/** An object schema; all members are required but those named. */
export function objectSchema(description: string, properties: Named, optional: readonly string[] = []): OpenApiObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', description, required, properties };
}

/** An object schema with further required members in front. */
export function withMembers({ required, properties, ...rest }: OpenApiObject, members: Named): OpenApiObject {
  const others: readonly unknown[] = Array.isArray(required) ? required : [];
  return {
    ...rest,
    required: [...Object.keys(members), ...others],
    properties: { ...members, ...Object(properties) },
  };
}

/** Letters and digits of a text, joined by underscores. */
export function nameOf(label: string): string {
  return label.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '');
}

/** Headers of a response that must not be stored. */
export const noStore: Named = { 'Cache-Control': refTo('headers', 'NoStore') };

/** The response to an unexpected error. */
export const internalError: DescribedResponse = {
  name: 'InternalError',
  description: 'Nothing was signed; the log of the service says why',
  errors: ['Internal server error'],
};
