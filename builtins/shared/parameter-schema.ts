import type { TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import { isRecord } from '../../lib/json/value.ts';
import {
  childPath,
  closedObject,
  compileSchema,
  error as errorAt,
  explain,
  type Finding,
  type Parameter,
  printable,
} from '../../plugins-sdk/config.ts';
import { Type } from '../../plugins-sdk/index.ts';
import { LinearPattern, LONGEST_PATTERN, type Work } from './linear-pattern.ts';

/** Steps of patterns that the check of one value may take: some milliseconds. */
const MOST_WORK = 200_000;
/** Characters of a reason. */
const LONGEST_WHY = 120;
/** A reason that says nothing of the schema. */
const MISFIT = 'does not fit its schema';

const type = Type.Enum(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);
const count = Type.Optional(Type.Integer({ minimum: 0 }));
const number = Type.Optional(Type.Number());
const list = Type.Optional(Type.Array(Type.Unknown(), { minItems: 1 }));
const text = Type.Optional(Type.String());
const any = Type.Optional(Type.Unknown());

/** The keywords of JSON Schema (draft 2020-12) that a schema may have; what stands in inner schemas is looked at by itself. */
const Keywords = closedObject({
  ...{ type: Type.Optional(Type.Union([type, Type.Array(type, { minItems: 1 })])), enum: list, const: any },
  ...{ pattern: Type.Optional(Type.String({ maxLength: LONGEST_PATTERN })), minLength: count, maxLength: count },
  ...{ minimum: number, maximum: number, exclusiveMinimum: number, exclusiveMaximum: number },
  multipleOf: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  ...{ items: any, prefixItems: list, minItems: count, maxItems: count },
  properties: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  required: Type.Optional(Type.Array(Type.String())),
  ...{ additionalProperties: any, minProperties: count, maxProperties: count },
  ...{ anyOf: list, oneOf: list, allOf: list },
  ...{ title: text, description: text, examples: list },
});

const INNER = new Set(['items', 'additionalProperties']);
const LISTS = new Set(['prefixItems', 'anyOf', 'oneOf', 'allOf']);
const NOTES = new Set(['title', 'description', 'examples']);

/** Says why a value does not fit; in few words, and without showing it. */
export type Misfit = (value: unknown) => string | undefined;

/** A schema of a parameter, or what is wrong with it. @param at its config path. */
export function parameterSchema(
  { schema, secret = false }: Pick<Parameter, 'schema' | 'secret'>,
  at: string,
): { readonly findings: readonly Finding[]; readonly misfit: Misfit } {
  const reading = new Reading();
  const validator = compileSchema(reading.read(schema, at));
  if (validator === undefined) reading.findings.push(errorAt(at, 'cannot be compiled'));
  const misfit = (value: unknown) => {
    reading.work.left = MOST_WORK;
    if (validator === undefined || validator.Check(value)) return undefined;
    reading.work.left = MOST_WORK;
    // What a secret may be is no matter of clients.
    return secret ? MISFIT : wordsOf(validator.Errors(value)[0]);
  };
  return { findings: reading.findings, misfit };
}

/** Makes of a schema one whose patterns take bounded time. */
class Reading {
  readonly findings: Finding[] = [];
  readonly work: Work = { left: 0 };

  read(schema: unknown, at: string): TSchema {
    const found = explain(Keywords, schema, at);
    this.findings.push(...found);
    if (found.length > 0 || !isRecord(schema)) return {};
    return Object.fromEntries(
      Object.entries(schema).flatMap(([keyword, value]) => this.#keyword(keyword, value, childPath(at, keyword))),
    );
  }

  #keyword(keyword: string, value: unknown, at: string): [string, unknown][] {
    if (NOTES.has(keyword)) return [];
    if (keyword === 'pattern') return [['~refine', [this.#pattern(String(value), at)]]];
    if (INNER.has(keyword)) return [[keyword, this.#inner(value, at)]];
    if (LISTS.has(keyword) && Array.isArray(value))
      return [[keyword, value.map((inner, i) => this.#inner(inner, childPath(at, i)))]];
    if (keyword !== 'properties' || !isRecord(value)) return [[keyword, value]];
    const members = Object.entries(value).map(([name, inner]) => [name, this.#inner(inner, childPath(at, name))]);
    return [[keyword, Object.fromEntries(members)]];
  }

  #inner(schema: unknown, at: string): unknown {
    return typeof schema === 'boolean' ? schema : this.read(schema, at);
  }

  #pattern(source: string, at: string) {
    try {
      const pattern = new LinearPattern(source);
      return {
        check: (value: unknown) => typeof value !== 'string' || pattern.test(value, this.work),
        error: () => `must match the pattern ${source}`,
      };
    } catch (cause) {
      if (!(cause instanceof SyntaxError)) throw cause;
      this.findings.push(errorAt(at, `is no pattern that can be used: ${cause.message}`));
      return { check: () => true, error: () => '' };
    }
  }
}

function wordsOf(error: TLocalizedValidationError | undefined): string {
  if (error === undefined) return MISFIT;
  const why = printable(`${error.instancePath} ${messageOf(error)}`.trim());
  return why.length > LONGEST_WHY ? MISFIT : why;
}

function messageOf(error: TLocalizedValidationError): string {
  if (error.keyword === 'boolean') return 'must not be there';
  if (error.keyword !== 'enum') return error.message;
  return `must be one of ${JSON.stringify(error.params.allowedValues).slice(1, -1)}`;
}
