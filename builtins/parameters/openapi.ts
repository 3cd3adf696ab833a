import { type DescribedOperation, type Endpoint, type Json, keys, type Parameter } from '../../plugins-sdk/index.ts';

function schemaOf({
  in: place,
  secret = false,
  default: fallback,
  description,
}: Parameter): Readonly<Record<string, Json>> {
  return {
    ...(place === 'body' ? {} : { type: ['string', 'number', 'boolean'] }),
    ...(fallback === undefined || secret ? {} : { default: fallback }),
    ...(description === undefined || description === '' ? {} : { description }),
  };
}

/** What a client may and must give; nothing of fixed parameters and of secret values. */
export function describeParameters(endpoint: Endpoint): DescribedOperation {
  const free = (keys.parameters.of(endpoint) ?? []).filter(({ fixed }) => fixed === undefined);
  const required = [...new Set(free.filter((parameter) => parameter.required).map(({ name }) => name))];
  const errors = [
    ...(required.length === 0 ? [] : [`Missing required parameter(s): ${required.join(', ')}`]),
    ...free.filter((parameter) => parameter.in !== 'body').map(({ name }) => `Invalid parameter: ${name}`),
    ...free.map(({ name }) => `Invalid parameter: ${name} (send this number as a string)`),
  ];
  return {
    parameters: Object.fromEntries(free.map((parameter) => [parameter.name, schemaOf(parameter)])),
    required,
    ...(errors.length === 0 ? {} : { responses: { 400: { errors } } }),
  };
}
