import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keccak256, toUtf8Bytes } from 'ethers';
import { stringify } from 'yaml';
import { JSON_HEADERS } from './http.ts';
import { type Lifetime, suite } from './lifetime.ts';
import { pluginTools } from './plugin-files.ts';
import { type Block, oneApi, type RunningService, serviceFor, TEST_ADDRESS, TEST_KEY } from './service.ts';
import { faults, holding, upstreamFor } from './upstream.ts';
import { verifyRaw } from './verify.ts';

/** Writes another config in place of that of a test service, with what `startTestService` adds to each. */
export async function rewrite(service: Pick<RunningService, 'folder'>, config: Block): Promise<void> {
  const server = { port: 0, drainDelay: 0, rateLimit: { max: 1_000_000 }, ...(config.server as object | undefined) };
  await writeFile(join(service.folder, 'config.yaml'), stringify({ version: '1.0', ...config, server }));
}

/**
 * Reloads a service by the config given, or by the file as it is. @returns whether it did, and what the service logged meanwhile,
 * as `<level> <message>`; requests are left out.
 */
export async function reload(service: RunningService, config?: Block, env: Record<string, string> = {}) {
  if (config !== undefined) await rewrite(service, config);
  const from = service.logs.length;
  const done = await service.reload(() => ({ SERVICE_PRIVATE_KEY: TEST_KEY, ...env }));
  const lines = service.logs
    .slice(from)
    .filter(({ level, fields }) => level !== 'debug' && fields.requestId === undefined)
    .map(({ level, message }) => `${level} ${message}`);
  return { done, lines };
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

/** A plugin whose config is a tag: it puts the tag into answers, and notes its start and stop. */
export const tagged = `${pluginTools}
let made = 0;
export default {
  name: 'tagged',
  configSchema: { parse: (value) => value },
  setup(_, { tag, delay }) {
    const one = tag + ' ' + ++made;
    return {
      start: async () => { note('start', one); if (delay) await globalThis.testGate; },
      stop: () => note('stop', one),
      hooks: { onAfterApiCall: ({ response: { data } }) => ({ data: { ...data, tag } }) },
    };
  },
};
`;
export const withTag = (tag: string, more: object = {}) => ({
  settings: { plugins: [{ source: './tagged.mjs', config: { tag, ...more } }] },
});
export const TAGGED = { files: { 'tagged.mjs': tagged } };

/** A service with the plugin {@link tagged}. */
export const startTagged = (lifetime: Lifetime, config: Block) => serviceFor(lifetime, config, TAGGED);

/** A plugin file that does nothing, but is another plugin. */
export const quiet = (name: string) => `export default { name: '${name}', hooks: { onResponseSent() {} } };`;
/** The settings that load the plugin file of that name. */
export const plugin = (name: string) => ({ settings: { plugins: [{ source: `./${name}.mjs` }] } });

/** What the upstream said, in a verified answer. */
export const answered = async (response: Response) => (await verifyRaw(response, TEST_ADDRESS)).rawData;

/** An upstream that says where it was asked at `/a`, `/b` and `/c`, keeps its answers at `/held`, and ends with the suite. */
export async function reloadable() {
  const { hold, ...others } = holding();
  const said = ['a', 'b', 'c'].map((from) => [`/${from}`, faults.json({ from })] as const);
  const upstream = await upstreamFor(suite, { '/held': hold, ...Object.fromEntries(said) });
  const config = (endpoints: Record<string, Block>, more: Block = {}) => oneApi(upstream.url, endpoints, more);
  return { upstream, config, ...others };
}
