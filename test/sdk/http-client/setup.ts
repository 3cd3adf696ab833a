import assert from 'node:assert/strict';
import { afterEach, beforeEach } from 'node:test';
import {
  type BoundedRequest,
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  RequestFailure,
  type RequestFailureKind,
} from '../../../lib/http/client/index.ts';
import { startUpstream, type Upstream } from '../../support/upstream.ts';

export const MIB = 1_048_576;

export let upstream: Upstream;
export let client: HttpClient;

/** Gives each test of a file an upstream and a client of its own. */
export function renewed(): void {
  beforeEach(async () => {
    upstream = await startUpstream();
    client = createHttpClient();
  });
  afterEach(async () => {
    await client.close();
    await upstream.close();
  });
}

type Given = Partial<BoundedRequest>;

/** Sends a request to the upstream. */
export function send(path: string, given: Given = {}) {
  return client.request({ method: 'GET', url: upstream.url + path, timeout: 5000, maxBytes: MIB, ...given });
}

/** The body of the answer to that request. */
export async function text(path: string, given?: Given): Promise<string> {
  return (await send(path, given)).body.toString();
}

/** Checks the kind and the exact end of the message. */
export async function fails(call: Promise<unknown>, kind: RequestFailureKind, detail: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof RequestFailure, String(error));
    assert.equal(error.kind, kind, error.message);
    assert.equal(error.message, detail);
    assert.equal(error.cause, undefined);
    return true;
  });
}

/** The same for a GET of the upstream. */
export function getFails(path: string, kind: RequestFailureKind, detail: string, given?: Given): Promise<void> {
  return fails(send(path, given), kind, `GET ${upstream.url} failed: ${detail}`);
}

export const TOO_LARGE = `the answer is larger than ${MIB} bytes`;
export const LATE = 'no complete answer within 200 ms';
export const UNCONNECTED = 'no connection within 200 ms';
export const ABORTED = 'aborted by the caller';

/** Replaces the client by one with other limits. */
export async function useClient(options: HttpClientOptions): Promise<void> {
  await client.close();
  client = createHttpClient(options);
}
