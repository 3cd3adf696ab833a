import type { Responses } from '../../plugins-sdk/openapi.ts';
import { BODY_LIMIT, refusals } from './refusals.ts';

const { invalidJson, tooDeep, bodyNotObject, parametersNotObject, tooLarge, contentType } = refusals;

/** Refusals of the body of every request. */
export const responses: Responses = {
  400: {
    description: 'The request is wrong',
    errors: [invalidJson, tooDeep, bodyNotObject, parametersNotObject].map((refusal) => refusal().message),
  },
  413: {
    name: 'BodyTooLarge',
    description: `The request body is larger than ${BODY_LIMIT} bytes`,
    errors: [tooLarge().message],
  },
  415: {
    name: 'WrongMediaType',
    description: 'The request body is announced as something else, or compressed',
    errors: [contentType().message],
  },
};
