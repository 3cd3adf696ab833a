import { readFile } from 'node:fs/promises';
import { optionalKey } from '../../plugins-sdk/config.ts';
import { definePlugin, type HttpResponse, Type } from '../../plugins-sdk/index.ts';
import { detailsOf, openapiKey } from '../shared/discovery.ts';
import { publicEndpoint } from './endpoint.ts';
import { pageReply } from './reply.ts';

const explorerKey = optionalKey(
  'settings',
  'explorer',
  Type.Boolean({ description: 'Serves the explorer at /; default false' }),
);

/** Reads the page's template: a package has it built, a source tree bundles it. */
async function readTemplate(): Promise<string> {
  try {
    return await readFile(new URL('./page.built.html', import.meta.url), 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const { bundleExplorer } = await import('./bundle.ts');
    return bundleExplorer();
  }
}

/** Serves `GET /`, a page to call endpoints and check signatures. Off unless `settings.explorer` is true. */
export const explorer = definePlugin({
  name: 'explorer',
  keys: [explorerKey],
  setup({ config, endpoints, node, describe }) {
    if (explorerKey.in(config) !== true) return {};
    const { title, description } = detailsOf(config).info;
    const openapi = Boolean(openapiKey.in(config));
    const described = describe();
    const shown = endpoints.map((endpoint) => publicEndpoint(endpoint, described));
    let reply: HttpResponse;
    return {
      start: async () => {
        reply = pageReply(await readTemplate(), { node, openapi, title, description, endpoints: shown });
      },
      // Nothing is asked before the start.
      routes: [{ method: 'GET', path: '/', admit: true, handle: () => reply }],
    };
  },
});
