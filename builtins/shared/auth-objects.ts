import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { authPath, type EndpointDraft } from '../../plugins-sdk/config.ts';

/** Returns an endpoint's valid auth objects of one type, each with its config path. */
export function authObjects<S extends TSchema>(endpoint: EndpointDraft, wanted: string, schema: S) {
  return endpoint.auth.flatMap((method, index) => {
    const { type, ...rest } = method;
    const isWanted = type === wanted && Check(schema, rest);
    return isWanted ? [{ method, terms: rest as Static<S>, at: authPath(endpoint, index) }] : [];
  });
}
