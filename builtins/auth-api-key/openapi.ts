import type { Endpoint } from '../../plugins-sdk/index.ts';
import type { OpenApiPart } from '../../plugins-sdk/openapi.ts';
import { limitHeaderRefs, limitHeadersPart, tooManyRequests } from '../shared/limit-openapi.ts';
import { NAME, refusals } from './refusals.ts';

/**
 * @param hasLimits whether any key has a limit.
 * @param showsLimit whether responses of an endpoint may say what is left of the limit of a key.
 */
export function describeApiKeys(hasLimits: boolean, showsLimit: (endpoint: Endpoint) => boolean): OpenApiPart {
  return {
    headers: limitHeadersPart,
    operation: (endpoint) => (showsLimit(endpoint) ? { answerHeaders: limitHeaderRefs } : {}),
    auth: {
      apiKey: {
        scheme: { type: 'apiKey', in: 'header', name: NAME, description: 'A key that the operator gave you' },
        responses: {
          401: {
            description: 'The key is missing or wrong',
            errors: [refusals.missing().message, refusals.wrong().message],
          },
          ...(hasLimits && { 429: tooManyRequests('Too many requests by this client', true) }),
        },
        title: 'API key',
      },
    },
  };
}
