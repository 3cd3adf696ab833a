import type { OutgoingRequest } from '../../plugins-sdk/index.ts';

type Headers = OutgoingRequest['headers'];

/** The headers of a request with those of the call. Of two with one name, in whatever case, the request's own wins. */
export function sentHeaders({ headers, callHeaders }: OutgoingRequest): Headers {
  if (callHeaders === undefined) return headers;
  const own = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const added = Object.entries(callHeaders).filter(([name]) => !own.has(name.toLowerCase()));
  return { ...Object.fromEntries(added), ...headers };
}
