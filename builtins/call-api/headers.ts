import type { OutgoingRequest } from '../../plugins-sdk/index.ts';

type Headers = OutgoingRequest['headers'];

/** Returns the headers of a request and of its call. Of two with one name, in whatever case, the request's own wins. */
export function sentHeaders({ headers, callHeaders }: OutgoingRequest): Headers {
  if (callHeaders === undefined) return headers;
  const own = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const added = Object.entries(callHeaders).filter(([name]) => !own.has(name.toLowerCase()));
  return { ...Object.fromEntries(added), ...headers };
}
