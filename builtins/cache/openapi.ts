import { type OpenApiPart, refTo } from '../../plugins-sdk/openapi.ts';
import { policyOf } from './policy.ts';
import { NAME } from './status.ts';

const CacheStatus = {
  description:
    'What the cache did (RFC 9211): `hit` with the seconds that the answer is still kept, or `fwd=miss`, `collapsed` with a request for the same; `detail=stale-if-error`: the upstream failed, and an older answer stands in; `detail=stale-while-revalidate`: a new one is being made',
  required: true,
  schema: {
    type: 'string',
    pattern: `^${NAME}; (fwd=miss(; collapsed)?|hit; ttl=-?\\d+(; detail=stale-(if-error|while-revalidate))?)$`,
  },
  example: `${NAME}; hit; ttl=57`,
};

/** What the cache adds to operations. */
export const openApiPart: OpenApiPart = {
  headers: { CacheStatus },
  operation: (endpoint) => {
    const policy = policyOf(endpoint);
    if (policy === undefined) return undefined;
    const { maxAge, staleIfError = 0, staleWhileRevalidate = 0 } = policy;
    const oldest = (milliseconds: number) => Math.ceil((maxAge + milliseconds) / 1000);
    const remarks = [
      ...(staleIfError > 0 ? [`where the upstream fails an older one, of at most ${oldest(staleIfError)} s`] : []),
      ...(staleWhileRevalidate > 0
        ? [`while a new one is made an older one, of at most ${oldest(staleWhileRevalidate)} s`]
        : []),
    ];
    return {
      answerHeaders: { 'Cache-Status': refTo('headers', 'CacheStatus') },
      ...(remarks.length > 0 && { remark: remarks.join('; ') }),
    };
  },
};
