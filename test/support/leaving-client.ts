import assert from 'node:assert/strict';
import { request } from 'node:http';
import { JSON_HEADERS } from './http.ts';

/** POSTs, and @returns what has the client leave before it has an answer. */
export function leavingFetch(url: string, headers: Readonly<Record<string, string>> = {}, body = '{}') {
  const leaving = new AbortController();
  const { signal } = leaving;
  const answer = fetch(url, { method: 'POST', headers: { ...JSON_HEADERS, ...headers }, body, signal });
  answer.catch(() => undefined);
  return async () => {
    leaving.abort();
    await assert.rejects(answer);
  };
}

/** POSTs, and @returns what resets the connection: a mere end could be that of a client that still listens. */
export function leavingRequest(url: string, headers: Readonly<Record<string, string>> = {}) {
  const sent = request(url, { method: 'POST', headers: { ...JSON_HEADERS, ...headers } });
  sent.on('error', () => undefined);
  sent.end('{}');
  return () => sent.socket?.resetAndDestroy();
}
