import { type DescribedResponse, refTo } from '../../plugins-sdk/openapi.ts';

/** The rate-limit headers as components of the OpenAPI document. */
export const limitHeadersPart = {
  RateLimitPolicy: {
    description: 'The limits of this client: `q` requests in `w` seconds',
    schema: { type: 'string', pattern: '^"[a-z]+";q=\\d+;w=\\d+(, "[a-z]+";q=\\d+;w=\\d+)*$' },
    example: '"address";q=100;w=60',
  },
  RateLimit: {
    description: 'What is left of them: `r` requests, and `t` seconds until all of them are there again',
    schema: { type: 'string', pattern: '^"[a-z]+";r=\\d+;t=\\d+(, "[a-z]+";r=\\d+;t=\\d+)*$' },
    example: '"address";r=99;t=1',
  },
};

/** References to the headers, for a response. */
export const limitHeaderRefs = {
  'RateLimit-Policy': refTo('headers', 'RateLimitPolicy'),
  RateLimit: refTo('headers', 'RateLimit'),
};

/** Describes the refusal of a client that has reached a limit. @param tells whether the response has rate-limit headers. */
export function tooManyRequests(description: string, tells: boolean): DescribedResponse {
  const headers = { 'Retry-After': refTo('headers', 'RetryAfter'), ...(tells && limitHeaderRefs) };
  return { description, errors: ['Too Many Requests'], headers };
}
