import assert from 'node:assert/strict';
import type { RunningService } from './service.ts';

export const REQUEST_ID = /^0x[0-9a-f]{64}$/;
export const JSON_HEADERS = { 'Content-Type': 'application/json' };

/** Asserts an error as clients get it: status, body letter by letter, content type, CORS header and request id. */
export async function assertRefused(response: Response, status: number, error: string): Promise<void> {
  const body = await response.text();
  assert.equal(body, JSON.stringify({ error }));
  assert.equal(response.status, status);
  assertRouteHeaders(response);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(body)));
}

/** Asserts what every response of a route carries where no CORS block is configured. */
export function assertRouteHeaders({ headers }: Response): void {
  assert.match(headers.get('x-request-id') ?? '', REQUEST_ID);
  assert.equal(headers.get('access-control-allow-origin'), '*');
}

/** What the upstream said, in an answer of an endpoint without an encoding. */
export async function rawDataOf(response: Response) {
  const { rawData, error } = JSON.parse(await response.text());
  assert.equal(response.status, 200, error);
  return rawData;
}

/** URL of an endpoint by its name in the config. */
export function endpointUrl(service: RunningService, name: string): string {
  const id = service.ids[name];
  assert.ok(id, `the endpoint ${name} was announced`);
  return `${service.url}/endpoints/${id}`;
}

/** POSTs a body as it is. */
export function postText(
  url: string,
  body: NonNullable<RequestInit['body']> | undefined,
  headers: Record<string, string> = JSON_HEADERS,
): Promise<Response> {
  return fetch(url, { method: 'POST', headers, ...(body === undefined ? {} : { body }) });
}
