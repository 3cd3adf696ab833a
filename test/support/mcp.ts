import type { TestContext } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { request } from 'undici';
import type { RunningService } from './service.ts';

type Headers = Readonly<Record<string, string>>;

const about = { name: 'test', version: '1.0.0' };

/** The official client, connected; of the protocol it speaks the version of 2026 unless told otherwise. */
export async function mcpClient(
  t: TestContext,
  { url }: Pick<RunningService, 'url'>,
  headers: Headers = {},
  mode = 'auto',
) {
  const client = new Client(about, mode === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {});
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  t.after(() => client.close());
  return client;
}

/** The official client of the first generation, connected. */
export async function firstMcpClient(t: TestContext, { url }: Pick<RunningService, 'url'>) {
  const client = new FirstClient(about);
  const transport = new FirstTransport(new URL(`${url}/mcp`));
  // Its types are of a time before exact optional properties.
  await client.connect(transport as unknown as Parameters<typeof client.connect>[0]);
  t.after(() => client.close());
  return client;
}

/** Sends a body to `/mcp` as it is, also with a `Host` of the test's. @returns the status, and the JSON of the response, if any. */
export async function postMcp({ url }: Pick<RunningService, 'url'>, message: unknown, headers: Headers = {}) {
  const { statusCode, body, ...response } = await request(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  });
  const text = (await body.text()).replace(/^event: message\ndata: /, '');
  return { status: statusCode, headers: response.headers, said: text === '' ? '' : JSON.parse(text) };
}

/** A message that calls a tool. */
export function callOf(name: string, given: unknown = {}) {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } };
}

/** What a tool's result says, in one text. */
export function textIn({ content }: { readonly content?: unknown }): string {
  const [first] = content as { readonly text: string }[];
  return first?.text ?? '';
}
