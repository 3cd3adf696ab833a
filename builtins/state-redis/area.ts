import { type StateArea, StateUnavailable } from '../../plugins-sdk/state.ts';
import type { Connection } from './connection.ts';
import { optional } from './scripts.ts';

/** Makes one area of a server. Every call is one command, and so one atomic step. @param prefix of its keys. */
export function areaOn(connection: Connection, prefix: string): StateArea {
  return {
    get: async (key) => (await connection.get(`${prefix}v:${key}`)) ?? undefined,
    compareAndSet: async (key, expected, next, { ttl = Number.POSITIVE_INFINITY, keepLonger = false } = {}) => {
      const time = Number.isFinite(ttl) ? `${Math.max(Math.ceil(ttl), 1)}` : '';
      const words = [...optional(expected), ...optional(next), time, keepLonger ? '1' : '0'];
      const conflict = await connection.run('compareAndSet', `${prefix}v:${key}`, words);
      if (conflict === null) return undefined;
      const [value]: unknown[] = Array.isArray(conflict) ? conflict : unexpected();
      return typeof value === 'string' ? { value } : {};
    },
    takeTokens: async (key, { max, window }, n = 1, debt = 0) => {
      const taken = await connection.run('takeTokens', `${prefix}b:${key}`, [max, window, n, debt].map(String));
      const [granted = 0, retryAfter = 0, left = 0] =
        typeof taken === 'string' ? taken.split(' ').map(Number) : unexpected();
      return { granted, retryAfter, left };
    },
  };
}

function unexpected(): never {
  throw new StateUnavailable('redis answered a script with something else than the script returns');
}
