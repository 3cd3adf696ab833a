import assert from 'node:assert/strict';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describeService } from '../../builtins/openapi/document.ts';
import { loadObject } from '../support/config.ts';
import type { RunningService } from '../support/service.ts';

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** The schemas with every object closed, so that a member that they do not describe shows. References name the document. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (!isNode(value)) return value;
  const inner = ([key, member]: [string, unknown]) => [key, key === '$ref' ? `document${member}` : closed(member)];
  const members = Object.fromEntries(Object.entries(value).map(inner));
  return value.type === 'object' && value.additionalProperties === undefined
    ? { ...members, additionalProperties: false }
    : members;
}

/** An OpenAPI document, against which a test holds requests and responses. */
export class Described {
  readonly #root: Node;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });

  constructor(document: unknown) {
    assert.ok(isNode(document));
    this.#root = document;
    this.#ajv.addSchema({ $id: 'document', components: closed(document.components) });
  }

  /** The value at a path of keys, references followed. */
  at(...keys: readonly string[]): unknown {
    return keys.reduce((value, key) => this.#follow(isNode(value) ? value[key] : undefined), this.#root as unknown);
  }

  #follow(value: unknown): unknown {
    if (!isNode(value) || typeof value.$ref !== 'string') return value;
    return this.at(...value.$ref.replace('#/', '').split('/'));
  }

  /** What is wrong with a value; nothing if it is as described. */
  faults(schema: unknown, value: unknown): string {
    const inner = closed(schema);
    assert.ok(isNode(inner));
    const validate = this.#ajv.compile(inner);
    return validate(value) ? '' : JSON.stringify(validate.errors);
  }

  /** What is wrong with the parameters of a request to an endpoint. */
  requestFaults(path: string, body: unknown): string {
    const schema = this.at('paths', path, 'post', 'requestBody', 'content', 'application/json', 'schema');
    return this.faults(schema, body);
  }

  /** Asserts that a response is one of those that an operation has: status, headers, media type, body. */
  async assertDescribed(path: string, method: string, response: Response): Promise<string> {
    const label = `${method} ${path} ${response.status}`;
    const described = this.at('paths', path, method, 'responses', String(response.status));
    const text = await response.text();
    assert.ok(isNode(described) && isNode(described.content) && isNode(described.headers), `${label}: ${text}`);
    for (const name of Object.keys(described.headers)) {
      const header = this.#follow(described.headers[name]);
      const given = response.headers.get(name);
      assert.ok(isNode(header) && (given !== null || header.required !== true), `${label} ${name}`);
      if (given === null) continue;
      const value = /^\d+$/.test(given) ? Number(given) : given;
      assert.equal(this.faults(header.schema, value), '', `${label} ${name}: ${given}`);
    }
    const [type = '', ...others] = Object.keys(described.content);
    assert.deepEqual([response.headers.get('content-type'), others], [type, []], label);
    const media = described.content[type];
    assert.ok(isNode(media), label);
    const value: unknown = type === 'application/json' ? JSON.parse(text) : text;
    assert.equal(this.faults(media.schema, value), '', `${label}: ${text}`);
    if (isNode(media.schema) && media.schema.contentSchema !== undefined) {
      const [, event = ''] = /^data: (.*)\n\n$/.exec(text) ?? [];
      assert.equal(this.faults(media.schema.contentSchema, JSON.parse(event)), '', `${label}: ${text}`);
    }
    if (isNode(media.examples)) {
      const examples = Object.values(media.examples).map((example) => isNode(example) && example.value);
      const known = examples.some((example) => JSON.stringify(example) === text);
      assert.ok(known, `${label}: no example is ${text}`);
    }
    return text;
  }
}

/** What a service of this config would say of itself. */
export async function describedBy(...config: Parameters<typeof loadObject>): Promise<Described> {
  return new Described(describeService({ ...(await loadObject(...config)), version: '1.2.3' }).document);
}

/** What a running service says of itself. */
export async function describedAt({ url }: Pick<RunningService, 'url'>): Promise<Described> {
  return new Described(await (await fetch(`${url}/openapi.json`)).json());
}

/** Compiles the schemas of OpenAPI once. */
const validator = new Validator();

export async function assertValid(described: Described): Promise<void> {
  const { valid, errors } = await validator.validate({ ...(described.at() as object) });
  assert.ok(valid, JSON.stringify(errors));
}
