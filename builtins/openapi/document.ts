import type { Definition, Endpoint } from '../../plugins-sdk/index.ts';
import {
  type DescribedAuth,
  type DescribedMode,
  type DescribedOperation,
  type DescribedService,
  type Named,
  nameOf,
  type OpenApiObject,
  type OpenApiPart,
  objectSchema,
  type Responses,
  refTo,
  type ServiceDescription,
} from '../../plugins-sdk/openapi.ts';
import { ground } from './ground.ts';
import { joinedResponses, rendered, withAnswerHeaders } from './responses.ts';

/** The plugins of a service in the order of their registration, and the config that they have. */
export interface ServiceSource extends Omit<DescribedService, 'own'> {
  /** The version of the service's package. */
  readonly version: string;
  readonly plugins: readonly { readonly definition: Definition; readonly config: unknown }[];
}

/** Builds the OpenAPI document from the parts of all plugins. Nothing of the config is published but what a plugin describes. */
export function describeService(source: ServiceSource): ServiceDescription {
  return new Description(source);
}

const ABOUT =
  'Calls upstream APIs and signs what they answer. An endpoint is asked at `POST /endpoints/{endpointId}`; its ID, a hash ' +
  'of its specification, stands in its path below. Answers are signed by `node`, which `GET /health` names: pin it.';

class Description implements ServiceDescription {
  readonly document: OpenApiObject;
  readonly auth: ReadonlyMap<string, DescribedAuth>;
  readonly modes: ReadonlyMap<string, DescribedMode>;
  readonly remarks = new Map<string, readonly string[]>();
  readonly #parts: readonly OpenApiPart[];
  /** Components that operations refer to. */
  readonly #schemes: Record<string, unknown> = {};
  readonly #responses: Record<string, unknown> = {};

  constructor({ plugins, config, endpoints, version }: ServiceSource) {
    const said = plugins.map(({ definition, config: own }) => definition.openapi?.({ config, endpoints, own }) ?? {});
    this.#parts = [ground, ...said];
    this.auth = new Map(Object.entries(byName(this.#each('auth'))));
    this.modes = new Map(Object.entries(byName(this.#each('modes'))));
    const servers = this.#each('servers').flat();
    const own = { title: 'Signed-data proxy', version, description: ABOUT };
    this.document = {
      openapi: '3.1.0',
      info: Object.assign(own, ...this.#each('info')),
      servers: servers.length > 0 ? servers : [{ url: '/' }],
      tags: tagsOf(endpoints),
      paths: this.#paths(endpoints),
      components: {
        schemas: this.#schemas(),
        headers: byName(this.#each('headers')),
        responses: this.#responses,
        securitySchemes: this.#schemes,
      },
    };
  }

  /** Returns one member of all parts that have it. */
  #each<K extends keyof OpenApiPart>(member: K): NonNullable<OpenApiPart[K]>[] {
    return this.#parts.map((part) => part[member]).filter((said) => said !== undefined);
  }

  /** Returns all schemas: one per kind of answer (`EncodedAnswer` for `Encoded`), those of modes, and those of plugins. */
  #schemas(): Named {
    const signed = this.#each('signed');
    const required: Named = Object.assign({}, ...signed.map((part) => part.required));
    const optional: Named = Object.assign({}, ...signed.map((part) => part.optional));
    const about = signed.flatMap(({ description }) => description ?? []).join(' ');
    const examples: Named = Object.assign({}, ...this.#each('examples'));
    const kinds = Object.entries(byName(this.#each('answers')));
    const all = kinds.map(([kind, members]) => {
      const properties = { ...NAMES, ...members, ...required, ...optional };
      return [kind, objectSchema(about, properties, Object.keys(optional))] as const;
    });
    const named = all.map(([kind, answer]) => {
      const example = examples[kind];
      return { [`${kind}Answer`]: example ? { ...answer, examples: [example] } : answer };
    });
    const ofModes = [...this.modes.values()].map((mode) => mode.schemas?.(Object.fromEntries(all)));
    return byName([...this.#each('schemas'), ...named, ...ofModes]);
  }

  #paths(endpoints: readonly Endpoint[]): OpenApiObject {
    const names = operationNames(endpoints);
    const asked = endpoints.map((endpoint, index) => {
      return { method: 'POST', path: `/endpoints/${endpoint.id}`, operation: this.#operation(endpoint, names[index]) };
    });
    const others = this.#each('routes')
      .flat()
      .map(({ method, path, admit, operation: about, responses }) => {
        const said = [responses, ...(admit ? this.#each('admit') : [])];
        const operation = { tags: [OWN_TAG], security: [], ...about, responses: this.#render(said) };
        return { method, path, operation };
      });
    const all: readonly { method: string; path: string; operation: OpenApiObject }[] = [...asked, ...others];
    const paths: Record<string, Named> = {};
    for (const { method, path, operation } of all) paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
    return paths;
  }

  #operation(endpoint: Endpoint, operationId: string | undefined): OpenApiObject {
    const { api, name, auth, block } = endpoint;
    const label = `${api}/${name}`;
    const parts = this.#parts.flatMap((part) => part.operation?.(endpoint) ?? []);
    const types = [...new Set(auth.map(({ type }) => type))];
    const methods = types.map((type) => ({ type, value: this.auth.get(type) ?? undescribed(type) }));
    const extensions = methods.map(({ type, value }) => value.operation?.(auth.filter((one) => one.type === type)));
    const security = methods.map(({ type, value }) => this.#security(type, value));
    // When all methods fail, the last one's refusal is sent. If one method lets everyone in, none fails.
    const refusing = methods.every(({ value }) => value.scheme !== undefined) ? methods.slice(-1) : [];
    const { early, responses, text } = this.#delivery(endpoint, parts);
    const said = [
      ...this.#each('admit'),
      ...parts.map((part) => part.responses),
      ...refusing.map(({ value }) => value.responses),
      withAnswerHeaders(responses, parts),
      ...(early ? [] : parts.map((part) => part.failures)),
    ];
    return {
      operationId,
      summary: label,
      description:
        typeof block.description === 'string' && block.description ? block.description : `The answer: ${text}`,
      tags: [api],
      // If one method lets everyone in, no credentials are needed.
      security: security.every((one) => Object.keys(one).length === 0) ? [] : security,
      ...Object.assign({}, ...extensions),
      requestBody: { required: true, content: { 'application/json': { schema: requestSchema(parts) } } },
      responses: this.#render(said),
    };
  }

  #delivery({ id, mode }: Endpoint, parts: readonly DescribedOperation[]) {
    // As in the pipeline, the first plugin that answers has encoded.
    const answer = parts.find((part) => part.answer !== undefined)?.answer;
    const remarks = parts.flatMap(({ remark }) => remark ?? []);
    this.remarks.set(id, remarks);
    const text = [answer?.text ?? 'signed', ...remarks].join('; ');
    const said = this.modes.get(mode);
    if (said !== undefined && answer !== undefined)
      return { early: said.early === true, text, responses: said.responses(answer.kind, text) };
    const description = `The answer, ${text}, as a plugin of the operator delivers it`;
    return { early: false, text, responses: { '2XX': { description } } };
  }

  #security(type: string, { scheme, operation }: DescribedAuth): OpenApiObject {
    if (scheme === undefined || operation !== undefined) return {};
    const name = this.auth.has(type) ? nameOf(type) : `plugin_${nameOf(type)}`;
    this.#schemes[name] = scheme;
    return { [name]: [] };
  }

  /** Makes the Responses Object of an operation; a response with a name becomes a component. */
  #render(said: readonly (Responses | undefined)[]): OpenApiObject {
    const all = Object.entries(joinedResponses(said)).map(([status, value]) => {
      const response = rendered(status, value);
      if (value.name === undefined) return [status, response];
      this.#responses[value.name] = response;
      return [status, refTo('responses', value.name)];
    });
    return Object.fromEntries(all);
  }
}

/** Makes the schema of a request's body from the parameters that plugins describe. */
function requestSchema(parts: readonly DescribedOperation[]): OpenApiObject {
  const required = [...new Set(parts.flatMap((part) => part.required ?? []))];
  const strict = parts.some((part) => part.strict === true);
  const inner = {
    type: 'object',
    description: `Parameters that are not listed are ${strict ? 'refused' : 'ignored'}`,
    ...(required.length > 0 && { required }),
    properties: byName(parts.map((part) => part.parameters)),
    additionalProperties: !strict,
  };
  const isNeeded = required.length > 0 || strict;
  return { type: 'object', ...(isNeeded && { required: ['parameters'] }), properties: { parameters: inner } };
}

/** Joins the descriptions of several plugins by name; of two with one name the later counts. */
function byName<T>(parts: readonly (Readonly<Record<string, T>> | undefined)[]): Readonly<Record<string, T>> {
  return Object.fromEntries(parts.flatMap((part = {}) => Object.entries(part)));
}

/** The tag of operations that are no endpoints. */
const OWN_TAG = 'service';

function tagsOf(endpoints: readonly Endpoint[]): readonly OpenApiObject[] {
  const apis = endpoints.map(({ api }): [string, string] => [api, `Endpoints that ask the API ${api}`]);
  const tags = new Map([...apis, [OWN_TAG, 'About the service, and what it is doing']]);
  return [...tags].map(([name, description]) => ({ name, description }));
}

/** The members of a signed answer that identify signer, endpoint and time. */
const NAMES: Named = {
  node: refTo('schemas', 'Address'),
  endpointId: refTo('schemas', 'Bytes32'),
  timestamp: refTo('schemas', 'Timestamp'),
};

/** Describes an auth type whose plugin describes nothing. */
function undescribed(type: string): DescribedAuth {
  const scheme = {
    type: 'http',
    scheme: type,
    description: 'Checked by a plugin of the operator, who says what it wants',
  };
  const description = 'A plugin of the operator refused the credentials';
  return { scheme, responses: { 401: { description, errors: ['Unauthorized'] } } };
}

/** Returns an operation name for each endpoint: `<api>_<endpoint>`, with the endpoint's ID where that is not unique. */
function operationNames(endpoints: readonly Endpoint[]): readonly string[] {
  const names = endpoints.map(({ api, name }) => `${nameOf(api)}_${nameOf(name)}`);
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return names.map((name, index) => (twice.has(name) ? `${name}_${endpoints[index]?.id}` : name));
}
