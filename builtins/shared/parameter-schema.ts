import { createContext, Script } from 'node:vm';
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
import { compareDecimals, isMultiple, parseDecimal } from './decimal.ts';

/** The most characters of a pattern. */
const LONGEST_PATTERN = 1000;
/** Milliseconds for one attempt to check a value: a pattern may backtrack for hours. */
const LONGEST_TRY_MS = 20;
/** Microseconds of CPU time after which the check of a value gives up. */
const MOST_CPU_US = 50_000;
/** The most characters of a reason. */
const LONGEST_WHY = 120;
/** A reason that reveals nothing of the schema. */
const MISFIT = 'does not fit its schema';

const type = Type.Enum(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);
const count = Type.Optional(Type.Integer({ minimum: 0 }));
const number = Type.Optional(Type.Number());
const list = Type.Optional(Type.Array(Type.Unknown(), { minItems: 1 }));
const text = Type.Optional(Type.String());
const any = Type.Optional(Type.Unknown());

/** The keywords of JSON Schema (draft 2020-12) that a schema may have; inner schemas are checked on their own. */
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

const TOO_LONG = 'takes too long to check';

const INNER = new Set(['items', 'additionalProperties']);
const LISTS = new Set(['prefixItems', 'anyOf', 'oneOf', 'allOf']);

/** Returns why a value does not fit its schema, in few words and without showing the value; undefined if it fits. */
export type Misfit = (value: unknown) => string | undefined;

/** Compiles a parameter's schema, or returns its faults. @param at its config path. */
export function parameterSchema(
  { schema, secret = false }: Pick<Parameter, 'schema' | 'secret'>,
  at: string,
): { readonly findings: readonly Finding[]; readonly misfit: Misfit } {
  const findings: Finding[] = [];
  const exact = Object(exactSchema(schema, at, findings));
  const validator = findings.length === 0 && isRecord(schema) ? compiled(exact) : undefined;
  if (validator === undefined) {
    const uncompiled = findings.length === 0 ? [errorAt(at, 'cannot be compiled')] : findings;
    return { findings: uncompiled, misfit: () => undefined };
  }
  // Nothing but a pattern can take long.
  const hasPattern = JSON.stringify(schema).includes('"pattern":');
  const words = (value: unknown) => (validator.Check(value) ? undefined : wordsOf(firstError(exact, value)));
  const misfit = (value: unknown) => {
    const why = hasPattern ? bounded(() => words(value)) : words(value);
    // A client must not learn the schema of a secret.
    return secret && why !== undefined ? MISFIT : why;
  };
  return { findings, misfit };
}

type Schema = Readonly<Record<string, unknown>>;
type Validator = ReturnType<typeof compileSchema>;

/** Makes a function that compiles something of a schema, once. */
function compiledOnce<S extends object>(compile: (schema: S) => Validator): (schema: S) => Validator {
  const known = new WeakMap<S, Validator>();
  return (schema) => {
    const found = known.get(schema) ?? compile(schema);
    known.set(schema, found);
    return found;
  };
}

/** Compiles a schema, once; `undefined` if it cannot be compiled. */
export const compiled = compiledOnce(compileSchema);
/** Compiles all but the rules for items and properties. */
const shallowOf = compiledOnce((schema: Schema) => {
  const properties = Object.keys(Object(schema.properties)).map((name) => [name, true]);
  return compileSchema({ ...schema, items: true, properties: Object.fromEntries(properties) });
});

/** Returns the first error. Compiled checks find the part at fault, since the library interprets the schema for every part. */
function firstError(schema: Schema, value: unknown): TLocalizedValidationError | undefined {
  const members = Object(value);
  const rules = Object(schema.properties);
  const isSplit = schema.prefixItems === undefined && shallowOf(schema)?.Check(value);
  for (const name of isSplit ? Object.keys(Array.isArray(value) ? value : rules) : []) {
    const rule = Array.isArray(value) ? schema.items : rules[name];
    if (!Object.hasOwn(members, name) || !isRecord(rule) || compiled(rule)?.Check(members[name])) continue;
    const error = firstError(rule, members[name]);
    const at = name.replaceAll('~', '~0').replaceAll('/', '~1');
    return error && { ...error, instancePath: `/${at}${error.instancePath}` };
  }
  return compiled(schema)?.Errors(value)[0];
}

/** The rules of numbers, by keyword: in words, and for exact decimals. The library compares doubles, and multiples only nearly. */
const RULES: readonly (readonly [keyword: string, words: string, holds: typeof isMultiple])[] = [
  ['integer', 'must be integer', isMultiple],
  ['exclusiveMinimum', 'must be > #', (value, limit) => compareDecimals(value, limit) > 0],
  ['exclusiveMaximum', 'must be < #', (value, limit) => compareDecimals(value, limit) < 0],
  ['minimum', 'must be >= #', (value, limit) => compareDecimals(value, limit) >= 0],
  ['maximum', 'must be <= #', (value, limit) => compareDecimals(value, limit) <= 0],
  ['multipleOf', 'must be multiple of #', isMultiple],
];

/**
 * Returns a schema that takes the symbols of {@link parseExact} for numbers, and judges these by their digits. Adds the faults of
 * the schema and of its inner schemas to the findings.
 */
function exactSchema(schema: unknown, at: string, findings: Finding[]): unknown {
  const faults = typeof schema === 'boolean' ? [] : explain(Keywords, schema, at);
  findings.push(...faults);
  if (faults.length > 0 || !isRecord(schema)) return schema;
  const members = Object.entries(schema).map(([keyword, value]) => {
    return [keyword, exactInner(keyword, value, childPath(at, keyword), findings)];
  });
  const types = [schema.type].flat();
  const integer = types.includes('integer') && !types.includes('number') ? 1 : undefined;
  const isNumeric = integer === 1 || types.includes('number');
  return {
    ...Object.fromEntries(members),
    ...(isNumeric && { type: [...types, 'symbol'] }),
    ...refinement({ ...schema, integer }),
  };
}

/** Returns a keyword's value with its inner schemas made exact. */
function exactInner(keyword: string, value: unknown, at: string, findings: Finding[]): unknown {
  const exact = (inner: unknown, key: string | number) => exactSchema(inner, childPath(at, key), findings);
  if (keyword === 'pattern') findings.push(...patternFaults(String(value), at));
  if (INNER.has(keyword)) return exactSchema(value, at, findings);
  if (LISTS.has(keyword) && Array.isArray(value)) return value.map(exact);
  if (keyword !== 'properties') return value;
  return Object.fromEntries(Object.entries(Object(value)).map(([name, inner]) => [name, exact(inner, name)]));
}

/** Returns the keywords that judge digits. */
function refinement(schema: Readonly<Record<string, unknown>>): object {
  const rules = RULES.flatMap(([keyword, words, holds]) => {
    const limit = parseDecimal(String(schema[keyword]));
    return limit === undefined ? [] : [{ text: words.replace('#', String(schema[keyword])), limit, holds }];
  });
  if (rules.length === 0) return {};
  const step = Number(schema.multipleOf ?? 0);
  const broken = (value: unknown) => {
    if (typeof value === 'number' ? step === 0 : typeof value !== 'symbol') return undefined;
    // An answer may have a hundred thousand numbers, and decimals take ten times as long.
    if (Number.isSafeInteger(value) && Number.isSafeInteger(step) && Number(value) % step === 0) return undefined;
    const number = parseDecimal(typeof value === 'symbol' ? (value.description ?? '') : String(value));
    return number ? rules.find(({ limit, holds }) => !holds(number, limit))?.text : 'must have fewer digits';
  };
  return { multipleOf: undefined, '~refine': [{ check: (value: unknown) => !broken(value), error: broken }] };
}

/** Returns the schema that is published for a parameter; undefined for a secret one. */
export function publicSchema({ schema, map, secret }: Parameter): Parameter['schema'] {
  if (secret || map === undefined) return secret ? undefined : schema;
  const { misfit } = parameterSchema({ schema: schema ?? {} }, '');
  return { type: 'string', ...schema, enum: Object.keys(map).filter((value) => misfit(value) === undefined) };
}

function patternFaults(source: string, at: string): Finding[] {
  try {
    new RegExp(source, 'u');
    return [];
  } catch (cause) {
    return [errorAt(at, `is no pattern that can be used: ${cause instanceof Error ? cause.message : ''}`)];
  }
}

const room: { work: (() => string | undefined) | undefined } = { work: undefined };
createContext(room);
const script = new Script('work()');

/** Runs work within a time; returns its result or {@link TOO_LONG}. It may be cut off and repeated: no side effects. */
function bounded(work: () => string | undefined): string | undefined {
  const began = process.cpuUsage();
  room.work = work;
  try {
    // On a busy machine, or during garbage collection, one attempt may time out without the pattern's fault.
    while (true) {
      try {
        return script.runInContext(room, { timeout: LONGEST_TRY_MS });
      } catch (cause) {
        const { user, system } = process.cpuUsage(began);
        if (!isTimeout(cause) || user + system > MOST_CPU_US) return TOO_LONG;
      }
    }
  } finally {
    room.work = undefined;
  }
}

/** Returns whether an attempt timed out. Otherwise the pattern ran out of stack, or is too large for this text. */
function isTimeout(cause: unknown): boolean {
  return isRecord(cause) && cause.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}

function wordsOf(error: TLocalizedValidationError | undefined): string {
  if (error === undefined) return MISFIT;
  const whys = [messageOf(error), MISFIT].map((rule) => printable(`${error.instancePath} ${rule}`.trim()));
  return whys.find(({ length }) => length <= LONGEST_WHY) ?? MISFIT;
}

function messageOf(error: TLocalizedValidationError): string {
  if (error.keyword === 'boolean') return 'must not be there';
  if (error.keyword === 'type') return error.message.replace(/either (\w+) or symbol$| or symbol$/, '$1');
  if (error.keyword === 'pattern') return `must match the pattern ${error.params.pattern}`;
  if (error.keyword !== 'enum') return error.message;
  return `must be one of ${JSON.stringify(error.params.allowedValues).slice(1, -1)}`;
}
