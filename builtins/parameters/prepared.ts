import { keys, type Parameter, receiptKey, reservedParameters, strictKey } from '../../plugins-sdk/config.ts';
import type { Endpoint, OutgoingRequest } from '../../plugins-sdk/index.ts';
import { type Misfit, parameterSchema } from '../shared/parameter-schema.ts';
import { sentValue } from '../shared/parameter-value.ts';
import { requiredIn } from '../shared/path-parameters.ts';
import { withForm } from './body.ts';
import { compileRequest } from './outgoing.ts';
import { type Declared, type OnNested, refuseNested, type Values } from './placement.ts';
import { schemaInPlace } from './schema-in-place.ts';

/** A parameter as it is resolved and checked in each request. */
export interface PreparedParameter extends Declared, Pick<Parameter, 'fixed' | 'default' | 'map'> {
  readonly required: boolean;
  readonly secret: boolean;
  /** Absent if the client may send any value, or none. */
  readonly misfit: Misfit | undefined;
}

/** The part of an endpoint's questions that is known before a request comes. */
export interface Prepared {
  readonly id: string;
  readonly declared: readonly PreparedParameter[];
  /** Names of the reserved parameters that the endpoint takes. */
  readonly reserved: readonly string[];
  readonly hasReceipts: boolean;
  /** The names that a request may send; absent: any. */
  readonly known: ReadonlySet<string> | undefined;
  request(values: Values): OutgoingRequest;
}

/** Prepares an endpoint. @param onNested called for a list or an object where only text is sent; a strict endpoint refuses it. */
export function prepare(endpoint: Endpoint, onNested: OnNested): Prepared {
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
    known: isStrict ? new Set([...free, ...reserved]) : undefined,
    request: hasMap ? (values) => request(declared.map((one, index) => sentValue(one, values[index]))) : request,
  };
}

function prepareOne(parameter: Parameter & Partial<Declared>, required: boolean) {
  const { in: place = 'query', secret = false, schema, ...rest } = parameter;
  const isChecked = schema !== undefined && rest.fixed === undefined;
  const misfit = isChecked
    ? parameterSchema({ schema: schemaInPlace({ ...rest, in: place }, schema), secret }, '').misfit
    : undefined;
  return { ...rest, in: place, required, secret, misfit };
}
