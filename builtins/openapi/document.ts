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
import { Claims, type Said } from './claims.ts';
import { ground } from './ground.ts';
import { requestSchema } from './request-schema.ts';
import { responsesOf, withAnswerHeaders } from './responses.ts';

/** The plugins of a service in the order of their registration, and the config that they have. */
export interface ServiceSource extends Omit<DescribedService, 'own'> {
  /** Of the service's program. */
  readonly version: string;
  readonly plugins: readonly { readonly definition: Definition; readonly config: unknown }[];
}

/**
 * Puts the parts of all plugins together. Nothing of the config gets in but what a plugin says.
 * @throws Error where two plugins describe the same thing differently.
 */
export function describeService(source: ServiceSource): ServiceDescription {
  const builder = new DocumentBuilder(source);
  const document = builder.build();
  const auth = new Map(Object.entries(builder.auth.toObject()));
  const modes = new Map(Object.entries(builder.modes.toObject()));
  return { document, auth, modes, remarks: builder.remarks };
}

const ABOUT =
  'Calls upstream APIs and signs what they answer. An endpoint is asked at `POST /endpoints/{endpointId}`; its ID, a hash ' +
  'of its specification, stands in its path below. Answers are signed by `node`, which `GET /health` names: pin it.';

function partsOf({ plugins, config, endpoints }: ServiceSource): Said<OpenApiPart>[] {
  const said = plugins.flatMap(({ definition: { name: plugin, openapi }, config: own }) => {
    const value = openapi?.({ config, endpoints, own });
    return value === undefined ? [] : [{ plugin, value }];
  });
  return [{ plugin: 'service', value: ground }, ...said];
}

class DocumentBuilder {
  readonly auth = new Claims<DescribedAuth>('auth type');
  readonly modes = new Claims<DescribedMode>('mode');
  readonly remarks = new Map<string, readonly string[]>();
  readonly #source: ServiceSource;
  readonly #parts: readonly Said<OpenApiPart>[];
  readonly #schemas = new Claims<OpenApiObject>('schema');
  readonly #headers = new Claims<OpenApiObject>('header');
  readonly #schemes = new Claims<OpenApiObject>('security scheme');
  readonly #operations = new Claims<OpenApiObject>('operation');
  readonly #ids = new Claims<string>('operationId');
  readonly #responses = new Claims<OpenApiObject>('response');

  constructor(source: ServiceSource) {
    this.#source = source;
    this.#parts = partsOf(source);
    for (const { plugin, value } of this.#parts) {
      this.auth.addAll(plugin, value.auth);
      this.modes.addAll(plugin, value.modes);
      this.#schemas.addAll(plugin, value.schemas);
      this.#headers.addAll(plugin, value.headers);
    }
  }

  build(): OpenApiObject {
    const { endpoints, version } = this.#source;
    this.#describeAnswers();
    const info = { title: 'Signed-data proxy', version, description: ABOUT };
    const servers = this.#parts.flatMap(({ value }) => value.servers ?? []);
    return {
      openapi: '3.1.0',
      info: Object.assign(info, ...this.#parts.map(({ value }) => value.info)),
      servers: servers.length > 0 ? servers : [{ url: '/' }],
      tags: tagsOf(endpoints),
      paths: this.#paths(),
      components: {
        schemas: this.#schemas.toObject(),
        headers: this.#headers.toObject(),
        responses: this.#responses.toObject(),
        securitySchemes: this.#schemes.toObject(),
      },
    };
  }

  /** `EncodedAnswer` for the kind `Encoded`, and what modes make of it. */
  #describeAnswers(): void {
    const signed = this.#parts.flatMap(({ value }) => value.signed ?? []);
    const required: Named = Object.assign({}, ...signed.map((part) => part.required));
    const optional: Named = Object.assign({}, ...signed.map((part) => part.optional));
    const about = signed.flatMap(({ description }) => description ?? []).join(' ');
    const examples: Named = Object.assign({}, ...this.#parts.map(({ value }) => value.examples));
    const kinds = new Claims<Named>('kind of answer');
    for (const { plugin, value } of this.#parts) kinds.addAll(plugin, value.answers);
    const answers: Record<string, OpenApiObject> = {};
    for (const [kind, { plugin, value: members }] of kinds) {
      const properties = { ...NAMES, ...members, ...required, ...optional };
      const answer = objectSchema(about, properties, Object.keys(optional));
      answers[kind] = answer;
      this.#schemas.add(plugin, `${kind}Answer`, { ...answer, ...(examples[kind] && { examples: [examples[kind]] }) });
    }
    for (const { plugin, value } of this.modes.values()) this.#schemas.addAll(plugin, value.schemas?.(answers));
  }

  #paths(): OpenApiObject {
    const { endpoints } = this.#source;
    const names = operationNames(endpoints);
    const paths: Record<string, OpenApiObject> = {};
    const add = (plugin: string, method: string, path: string, operation: OpenApiObject) => {
      this.#operations.add(plugin, `${method} ${path}`, operation);
      this.#ids.add(plugin, String(operation.operationId), `${method} ${path}`);
      paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
    };
    for (const [index, endpoint] of endpoints.entries())
      add('service', 'POST', `/endpoints/${endpoint.id}`, this.#operation(endpoint, names[index] ?? ''));
    for (const { plugin, value } of this.#parts) {
      for (const { method, path, admit, operation, responses } of value.routes ?? []) {
        const said = [{ plugin, value: responses }, ...(admit ? this.#admission() : [])];
        const about = { tags: [OWN_TAG], security: [], ...operation };
        add(plugin, method, path, { ...about, responses: responsesOf(this.#responses, `${method} ${path}`, said) });
      }
    }
    return paths;
  }

  #admission(): Said<Responses | undefined>[] {
    return this.#parts.map(({ plugin, value }) => ({ plugin, value: value.admit }));
  }

  #operation(endpoint: Endpoint, operationId: string): OpenApiObject {
    const { api, name, auth, block } = endpoint;
    const parts = this.#parts.flatMap(({ plugin, value }): Said<DescribedOperation>[] => {
      const operation = value.operation?.(endpoint);
      return operation === undefined ? [] : [{ plugin, value: operation }];
    });
    const types = [...new Set(auth.map(({ type }) => type))];
    const methods = types.map((type) => ({ type, ...(this.auth.get(type) ?? undescribed(type)) }));
    const security = methods.map((method) => this.#security(method));
    // When all methods fail the last one answers; where one lets everyone in none fails.
    const refusing = methods.every(({ value }) => value.scheme !== undefined) ? methods.slice(-1) : [];
    const { early, delivered, text } = this.#delivery(endpoint, parts);
    const said = [
      ...this.#admission(),
      ...parts.map(({ plugin, value }) => ({ plugin, value: value.responses })),
      ...refusing.map(({ plugin, value }) => ({ plugin, value: value.responses })),
      { ...delivered, value: withAnswerHeaders(delivered.value, parts) },
      ...(early ? [] : parts.map(({ plugin, value }) => ({ plugin, value: value.failures }))),
    ];
    return {
      operationId,
      summary: `${api}/${name}`,
      description:
        typeof block.description === 'string' && block.description ? block.description : `The answer: ${text}`,
      tags: [api],
      // Where everyone is let in, none is needed.
      security: security.every((one) => Object.keys(one).length === 0) ? [] : security,
      ...Object.assign(
        {},
        ...methods.map(({ type, value }) => value.operation?.(auth.filter((one) => one.type === type))),
      ),
      requestBody: {
        required: true,
        content: { 'application/json': { schema: requestSchema(`${api}/${name}`, parts) } },
      },
      responses: responsesOf(this.#responses, `${api}/${name}`, said),
    };
  }

  #delivery({ id, mode }: Endpoint, parts: readonly Said<DescribedOperation>[]) {
    // As in the pipeline, whoever answers first has encoded.
    const answer = parts.find(({ value }) => value.answer !== undefined)?.value.answer;
    const remarks = parts.flatMap(({ value }) => value.remark ?? []);
    this.remarks.set(id, remarks);
    const text = [answer?.text ?? 'signed', ...remarks].join('; ');
    const said = this.modes.get(mode);
    if (said === undefined || answer === undefined) {
      const description = `The answer, ${text}, as a plugin of the operator delivers it`;
      return { early: false, text, delivered: { plugin: mode, value: { '2XX': { description } } } };
    }
    const { plugin, value } = said;
    return { early: value.early === true, text, delivered: { plugin, value: value.responses(answer.kind, text) } };
  }

  #security({ type, plugin, value }: Said<DescribedAuth> & { readonly type: string }): OpenApiObject {
    if (value.scheme === undefined || value.operation !== undefined) return {};
    const name = this.auth.has(type) ? nameOf(type) : `plugin_${nameOf(type)}`;
    this.#schemes.add(plugin, name, value.scheme);
    return { [name]: [] };
  }
}

/** Of the operations that are no endpoint. */
const OWN_TAG = 'service';

function tagsOf(endpoints: readonly Endpoint[]): readonly OpenApiObject[] {
  const apis = endpoints.map(({ api }): [string, string] => [api, `Endpoints that ask the API ${api}`]);
  const tags = new Map([...apis, [OWN_TAG, 'About the service, and what it is doing']]);
  return [...tags].map(([name, description]) => ({ name, description }));
}

/** The members of a signed answer that say whose it is. */
const NAMES: Named = {
  node: refTo('schemas', 'Address'),
  endpointId: refTo('schemas', 'Bytes32'),
  timestamp: refTo('schemas', 'Timestamp'),
};

/** A type of a plugin that describes nothing. */
function undescribed(type: string): Said<DescribedAuth> {
  const scheme = {
    type: 'http',
    scheme: type,
    description: 'Checked by a plugin of the operator, who says what it wants',
  };
  const description = 'A plugin of the operator refused the credentials';
  return { plugin: type, value: { scheme, responses: { 401: { description, errors: ['Unauthorized'] } } } };
}

/** `<api>_<endpoint>`, with the endpoint's ID where that is not unique. */
function operationNames(endpoints: readonly Endpoint[]): readonly string[] {
  const names = endpoints.map(({ api, name }) => `${nameOf(api)}_${nameOf(name)}`);
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, index) => (counts.get(name) === 1 ? name : `${name}_${endpoints[index]?.id}`));
}
