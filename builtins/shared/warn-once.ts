import type { Endpoint, Services } from '../../plugins-sdk/index.ts';

/** Returns a function that logs a warning once per endpoint, because one per request would fill the log. */
export function warnOnce({ log }: Pick<Services, 'log'>, message: string) {
  const warned = new Set<string>();
  return ({ id, api, name }: Endpoint, fields: Readonly<Record<string, unknown>> = {}): void => {
    if (warned.has(id)) return;
    warned.add(id);
    log.warn(message, { endpoint: `${api}/${name}`, ...fields });
  };
}
