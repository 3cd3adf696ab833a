import type { Endpoint } from '../../plugins-sdk/index.ts';
import type { OpenApiPart } from '../../plugins-sdk/openapi.ts';
import { limitHeaderRefs, limitHeadersPart, tooManyRequests } from '../shared/limit-openapi.ts';
import { NAME, refusals } from './refusals.ts';

/**
 * Describes API keys and their limits.
 * @param limited the endpoints that accept a key with a limit.
 * @param tells whether responses may show what is left of the limit.
 */
export function describeApiKeys(limited: readonly Endpoint[], tells: boolean): OpenApiPart {
  return {
    headers: limitHeadersPart,
    operation: (endpoint) => (tells && limited.includes(endpoint) ? { answerHeaders: limitHeaderRefs } : {}),
    auth: {
      apiKey: {
        scheme: { type: 'apiKey', in: 'header', name: NAME, description: 'A key that the operator gave you' },
        responses: {
          401: {
            description: 'The key is missing or wrong',
            errors: [refusals.missing().message, refusals.wrong().message],
          },
          ...(limited.length > 0 && { 429: tooManyRequests('Too many requests by this client', tells) }),
        },
        title: 'API key',
      },
    },
  };
}
