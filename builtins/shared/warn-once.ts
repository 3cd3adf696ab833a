import type { Endpoint, Services } from '../../plugins-sdk/index.ts';

/** Warns of something at most once an endpoint: what happens at each request would fill the log. */
export function warnOnce({ log }: Pick<Services, 'log'>, message: string) {
  const warned = new Set<string>();
  return ({ id, api, name }: Endpoint, fields: Readonly<Record<string, unknown>> = {}): void => {
    if (warned.has(id)) return;
    warned.add(id);
    log.warn(message, { endpoint: `${api}/${name}`, ...fields });
  };
}
