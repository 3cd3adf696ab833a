import { Refusal } from '../../plugins-sdk/index.ts';
import { TOO_DEEP } from '../shared/parameter-value.ts';

/** Most bytes of a request body, as received. */
export const BODY_LIMIT = 65_536;

/** Refusals of the body itself. */
export const refusals = {
  contentType: () => new Refusal(415, 'Content-Type must be application/json'),
  tooLarge: () => new Refusal(413, 'Request body too large'),
  invalidJson: () => new Refusal(400, 'Request body must be valid JSON'),
  tooDeep: () => new Refusal(400, TOO_DEEP),
  bodyNotObject: () => new Refusal(400, 'Request body must be an object'),
  noParameters: () => new Refusal(400, 'Request body must have parameters'),
  parametersNotObject: () => new Refusal(400, 'Request parameters must be an object'),
};
