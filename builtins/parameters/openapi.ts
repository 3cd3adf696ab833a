import { typesIn } from '../../lib/json/value.ts';
import { keys, type Parameter, receiptKey, reservedParameters, strictKey } from '../../plugins-sdk/config.ts';
import type { Endpoint, Json } from '../../plugins-sdk/index.ts';
import type { DescribedOperation } from '../../plugins-sdk/openapi.ts';
import { publicSchema } from '../shared/parameter-schema.ts';
import { INEXACT, invalidParameter } from '../shared/parameter-value.ts';
import { requiredIn } from '../shared/path-parameters.ts';
import { withForm } from './body.ts';
import { type Declared, schemaInPlace } from './placement.ts';

/** Describes the value of a parameter. Outside a JSON body `null` is no value, whatever the schema says. */
function schemaOf(parameter: Parameter & Partial<Declared>, isRequired: boolean): Readonly<Record<string, Json>> {
  const { secret = false, default: fallback, description } = parameter;
  const schema = schemaInPlace(parameter, publicSchema(parameter));
  const isNullRefused = parameter.form || (isRequired && parameter.in !== 'body');
  return {
    ...schema,
    ...(isNullRefused && typesIn(schema).includes('null') ? { not: { type: 'null' } } : {}),
    ...(fallback === undefined || secret ? {} : { default: fallback }),
    ...(description === undefined || description === '' ? {} : { description }),
  };
}

/** Merges the schemas of all parameters with one name: the client sends one value, which must fit each. */
function allOf(schemas: readonly Readonly<Record<string, Json>>[]): Readonly<Record<string, Json>> {
  const [first = {}, ...others] = schemas;
  return others.length === 0 ? first : { allOf: schemas };
}

/** Describes what a client may and must send, without fixed parameters and secret values. */
export function describeParameters(endpoint: Endpoint): DescribedOperation {
  const free = withForm(endpoint, keys.parameters.of(endpoint) ?? []).filter(({ fixed }) => fixed === undefined);
  const names = [...new Set(free.map(({ name }) => name))];
  const required = [...new Set(free.filter(requiredIn(endpoint)).map(({ name }) => name))];
  const strict = strictKey.of(endpoint) === true;
  const signed = receiptKey.of(endpoint) === true ? [...names, ...reservedParameters(endpoint)] : [];
  const errors = [
    ...(strict ? ['Unknown parameter: <name>', 'Request body must have parameters'] : []),
    ...free.flatMap(({ name, schema }) => (schema === undefined ? [] : [invalidParameter(name, '<why>')])),
    ...(required.length === 0 ? [] : [`Missing required parameter(s): ${required.join(', ')}`]),
    ...free
      .filter(({ in: place, form, map }) => place !== 'body' || form || map !== undefined)
      .map(({ name }) => invalidParameter(name)),
    ...signed.map((name) => invalidParameter(name, INEXACT)),
  ];
  return {
    parameters: Object.fromEntries(
      names.map((name) => {
        const same = free.filter((parameter) => parameter.name === name);
        return [name, allOf(same.map((parameter) => schemaOf(parameter, required.includes(name))))];
      }),
    ),
    required,
    ...(strict ? { strict } : {}),
    ...(errors.length === 0 ? {} : { responses: { 400: { errors } } }),
  };
}
