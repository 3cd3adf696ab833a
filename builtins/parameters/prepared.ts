import { keys, type Parameter, receiptKey, reservedParameters, strictKey } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';
import { parameterSchema } from '../shared/parameter-schema.ts';
import { sentValue } from '../shared/parameter-value.ts';
import { requiredIn } from '../shared/path-parameters.ts';
import { withForm } from './body.ts';
import { compileRequest } from './outgoing.ts';
import { type Declared, type OnNested, refuseNested, type Values } from './placement.ts';
import { schemaInPlace } from './schema-in-place.ts';

/** The part of an endpoint's questions that is known before a request comes. */
export type Prepared = Readonly<ReturnType<typeof prepare>>;

/** Prepares an endpoint. @param onNested called for a list or an object where only text is sent; a strict endpoint refuses it. */
export function prepare(endpoint: Endpoint, onNested: OnNested) {
  const isStrict = strictKey.of(endpoint) === true;
  const isRequired = requiredIn(endpoint);
  const all = withForm(endpoint, keys.parameters.of(endpoint) ?? []);
  const declared = all.map((one) => prepareOne(one, isRequired(one)));
  const free = declared.filter(({ fixed }) => fixed === undefined).map(({ name }) => name);
  const reserved = reservedParameters(endpoint);
  const request = compileRequest(endpoint, declared, isStrict ? refuseNested : onNested);
  const hasMap = declared.some(({ map }) => map !== undefined);
  return {
    ...{ id: endpoint.id, declared, reserved, hasReceipts: receiptKey.of(endpoint) === true },
    /** The names that a request may send; absent: any. */
    known: isStrict ? new Set([...free, ...reserved]) : undefined,
    request: hasMap
      ? (values: Values) => request(declared.map((one, index) => sentValue(one, values[index])))
      : request,
  };
}

/** Prepares a parameter to be resolved and checked. It has a `misfit` unless the client may send any value, or none. */
function prepareOne(parameter: Parameter & Partial<Declared>, required: boolean) {
  const { in: place = 'query', secret = false, schema, ...rest } = parameter;
  const isChecked = schema !== undefined && rest.fixed === undefined;
  const misfit = isChecked
    ? parameterSchema({ schema: schemaInPlace({ ...rest, in: place }, schema), secret }, '').misfit
    : undefined;
  return { ...rest, in: place, required, secret, misfit };
}
