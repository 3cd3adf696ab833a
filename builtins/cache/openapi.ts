import type { Endpoint } from '../../plugins-sdk/index.ts';
import { type OpenApiPart, refTo } from '../../plugins-sdk/openapi.ts';
import { NAME } from './status.ts';

const CacheStatus = {
  description:
    'What the cache did (RFC 9211): `hit` with the seconds that the answer is still kept, or `fwd=miss`, `collapsed` with a request for the same; `detail=stale-if-error`: the upstream failed, and an older answer stands in',
  required: true,
  schema: {
    type: 'string',
    pattern: `^${NAME}; (fwd=miss(; collapsed)?|hit; ttl=-?\\d+(; detail=stale-if-error)?)$`,
  },
  example: `${NAME}; hit; ttl=57`,
};

interface Policy {
  readonly maxAge: number;
  readonly staleIfError?: number;
}

/** @param policyOf of an endpoint whose answers are kept. */
export function describeCache(policyOf: (endpoint: Endpoint) => Policy | undefined): OpenApiPart {
  return {
    headers: { CacheStatus },
    operation: (endpoint) => {
      const policy = policyOf(endpoint);
      if (policy === undefined) return undefined;
      const { maxAge, staleIfError = 0 } = policy;
      const oldest = Math.ceil((maxAge + staleIfError) / 1000);
      return {
        answerHeaders: { 'Cache-Status': refTo('headers', 'CacheStatus') },
        ...(staleIfError > 0 && { remark: `where the upstream fails an older one, of at most ${oldest} s` }),
      };
    },
  };
}
