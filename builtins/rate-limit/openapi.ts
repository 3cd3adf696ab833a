import type { OpenApiPart } from '../../plugins-sdk/openapi.ts';
import { limitHeaderRefs, limitHeadersPart, tooManyRequests } from '../shared/limit-openapi.ts';

/** Describes the limit. @param tells whether responses show what is left. */
export function describeLimit(tells: boolean): OpenApiPart {
  return {
    headers: limitHeadersPart,
    admit: { 429: { name: 'RateLimited', ...tooManyRequests('Too many requests from this address', tells) } },
    operation: () => (tells ? { answerHeaders: limitHeaderRefs } : {}),
  };
}
