import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keccak256, toUtf8Bytes } from 'ethers';
import { stringify } from 'yaml';
import { JSON_HEADERS } from './http.ts';
import { type Block, type RunningService, TEST_KEY } from './service.ts';

/** Writes another config in place of that of a test service, with what `startTestService` adds to each. */
export async function rewrite(service: Pick<RunningService, 'folder'>, config: Block): Promise<void> {
  const server = { port: 0, drainDelay: 0, rateLimit: { max: 1_000_000 }, ...(config.server as object | undefined) };
  await writeFile(join(service.folder, 'config.yaml'), stringify({ version: '1.0', ...config, server }));
}

/** What a reload did, and what the service logged meanwhile, as `<level> <message>`; requests are left out. */
export interface Reloaded {
  readonly done: boolean;
  readonly lines: readonly string[];
}

/** Reloads a service by the config given, or by the file as it is. */
export async function reload(service: RunningService, config?: Block, env: Record<string, string> = {}) {
  if (config !== undefined) await rewrite(service, config);
  const from = service.logs.length;
  const done = await service.reload(() => ({ SERVICE_PRIVATE_KEY: TEST_KEY, ...env }));
  const lines = service.logs
    .slice(from)
    .filter(({ level, fields }) => level !== 'debug' && fields.requestId === undefined)
    .map(({ level, message }) => `${level} ${message}`);
  return { done, lines } satisfies Reloaded;
}

/** The ID of a free GET endpoint without parameters and encoding, out of the text that the decisions have hashed. */
export function idOf(url: string, path: string): string {
  const text = `{"encoding":null,"encrypt":null,"method":"GET","parameters":[],"path":"${path}","url":"${url}"}`;
  return keccak256(toUtf8Bytes(text));
}

/** POSTs to an endpoint that may have come with a reload. */
export function postTo(service: RunningService, id: string, body = '{}'): Promise<Response> {
  return fetch(`${service.url}/endpoints/${id}`, { method: 'POST', headers: JSON_HEADERS, body });
}
