import {
  type DeclaredParameter,
  type EndpointDraft,
  error,
  type Finding,
  optionalKey,
  type Parameter,
  warning,
} from '../../plugins-sdk/config.ts';
import { Type } from '../../plugins-sdk/index.ts';

export const bodyType = optionalKey(
  'endpoint',
  'bodyType',
  Type.Enum(['json', 'form'], { description: 'How body parameters are sent; default json' }),
);

/** Marks the body parameters of an endpoint that sends a form. */
export function withForm<P extends Pick<Parameter, 'in'>>(
  endpoint: Pick<EndpointDraft, 'block' | 'apiBlock'>,
  parameters: readonly P[],
): readonly (P & { readonly form?: true })[] {
  if (bodyType.of(endpoint) !== 'form') return parameters;
  return parameters.map((one) => (one.in === 'body' ? { ...one, form: true } : one));
}

/** An object under construction. It has no prototype, so that any name can be an own member. */
export type Members = Record<string, unknown>;

/** Returns the member names on the way to a parameter's place in the body. */
export function stepsOf({ name, nested }: Pick<Parameter, 'name' | 'nested'>): readonly string[] {
  return nested ? name.split('.') : [name];
}

/** Sets the member at the end of the steps. */
export function setMember(members: Members, [step = '', ...further]: readonly string[], value: unknown): void {
  if (further.length === 0) members[step] = value;
  else {
    const inner: Members = Object.assign(Object.create(null), members[step]);
    members[step] = inner;
    setMember(inner, further, value);
  }
}

/** Checks `style`, `nested` and `bodyType`. */
export function* checkBody(endpoint: EndpointDraft, declared: readonly DeclaredParameter[]): Iterable<Finding> {
  const isForm = bodyType.of(endpoint) === 'form';
  const body = declared.filter((parameter) => parameter.in === 'body');
  for (const { at, in: place, style, nested } of declared) {
    if (style !== undefined && place !== 'query') yield error(`${at}.style`, 'is for parameters with in: query');
    if (nested && place !== 'body') yield error(`${at}.nested`, 'is for parameters with in: body');
    if (nested && place === 'body' && isForm) yield error(`${at}.nested`, 'bodyType: form has no objects');
  }
  for (const parameter of body) yield* checkSteps(parameter, body);
  if (isForm && body.length === 0)
    yield warning(`${endpoint.path}.bodyType`, 'has no effect: no parameter has in: body');
}

function* checkSteps(parameter: DeclaredParameter, body: readonly DeclaredParameter[]): Iterable<Finding> {
  const at = `${parameter.at}.name`;
  const steps = stepsOf(parameter);
  if (steps.includes('')) return yield error(at, 'must be names with one dot between them, since nested is true');
  const holder = body.find((other) => {
    const outer = stepsOf(other);
    return outer.length < steps.length && outer.every((step, i) => step === steps[i]);
  });
  if (holder !== undefined) yield error(at, `leads into "${holder.name}", which is a parameter itself`);
}
