import { readFile } from 'node:fs/promises';
import { configKey, definePlugin, type HttpResponse, Type } from '../../plugins-sdk/index.ts';
import { pageData } from './data.ts';
import { publicEndpoint } from './endpoint.ts';
import { pageReply } from './reply.ts';

const explorerKey = configKey(
  'settings',
  'explorer',
  Type.Optional(
    Type.Boolean({
      description: 'Serves a page at / that shows the endpoints, calls them and checks signatures; default false',
    }),
  ),
);

const Details = Type.Object({ title: Type.Optional(Type.String()), description: Type.Optional(Type.String()) });

/** Read only. */
const openapiKey = configKey('settings', 'openapi', Type.Optional(Type.Union([Type.Boolean(), Details])));

/** A package holds the page ready-made; a source tree makes it, once for all reloads of a process. */
let template: Promise<string> | undefined;

async function readTemplate(): Promise<string> {
  try {
    return await readFile(new URL('./page.built.html', import.meta.url), 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    const { bundleExplorer } = await import('./bundle.ts');
    return bundleExplorer();
  }
}

/** `GET /`: a page on which a person calls the endpoints and checks the signatures. Off unless `settings.explorer` is true. */
export const explorer = definePlugin({
  name: 'explorer',
  budget: 'none',
  keys: [explorerKey],
  setup({ config, endpoints, node, describe }) {
    if (explorerKey.in(config) !== true) return {};
    const openapi = openapiKey.in(config) ?? false;
    const { title, description } = typeof openapi === 'object' ? openapi : {};
    const about = { node, openapi: openapi !== false, ...(title && { title }), ...(description && { description }) };
    const described = describe();
    const shown = endpoints.map((endpoint) => publicEndpoint(endpoint, described.auth));
    const data = pageData(about, shown, described);
    let page: HttpResponse | undefined;
    return {
      start: async () => {
        template ??= readTemplate().catch((error) => {
          template = undefined;
          throw error;
        });
        page = pageReply(await template, data);
      },
      routes: [
        {
          method: 'GET',
          path: '/',
          admit: true,
          handle: () => {
            if (page === undefined) throw new Error('the explorer was not started');
            return page;
          },
        },
      ],
    };
  },
});
