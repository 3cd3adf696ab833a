/** The service's log; never pass it secrets. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const nothing = () => undefined;
/** A log that drops everything, for code that runs without a service. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
