/** For what a plugin says of itself in the OpenAPI document of its service. */

export {
  internalError,
  nameOf,
  noStore,
  objectSchema,
  refTo,
  textSchema,
  withMembers,
} from './openapi/components.ts';
export type {
  DescribedAuth,
  DescribedMode,
  DescribedOperation,
  DescribedResponse,
  DescribedRoute,
  DescribedService,
  Named,
  OpenApiObject,
  OpenApiPart,
  Price,
  Responses,
  ServiceDescription,
} from './openapi/part.ts';
