import { readFile } from 'node:fs/promises';
import { optionalKey } from '../../plugins-sdk/config-key.ts';
import { definePlugin, type HttpResponse, type Static, Type } from '../../plugins-sdk/index.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
import { detailsOf, openapiKey } from '../shared/discovery.ts';
import { pageData } from './data.ts';
import { publicEndpoint } from './endpoint.ts';
import { isLocal, operatorRoute } from './operator.ts';
import { pageReply } from './reply.ts';

const Options = closedObject({
  operatorToken: Type.Optional(
    Type.String({
      minLength: 16,
      description: 'Lets whoever has it ask upstreams on the page, on this machine alone, without keys of clients',
    }),
  ),
});

const explorerKey = optionalKey(
  'settings',
  'explorer',
  Type.Union([Type.Boolean(), Options], {
    description: 'Serves a page at / that shows the endpoints, calls them and checks signatures; default false',
  }),
);

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
  keys: [explorerKey],
  setup(services) {
    const { config, endpoints, node, describe } = services;
    const chosen = explorerKey.in(config) ?? false;
    if (chosen === false) return {};
    const { operatorToken }: Static<typeof Options> = chosen === true ? {} : chosen;
    const { title, description } = detailsOf(config).info;
    const about = {
      node,
      openapi: (openapiKey.in(config) ?? false) !== false,
      ...(title && { title }),
      ...(description && { description }),
    };
    const described = describe();
    const shown = endpoints.map((endpoint) => publicEndpoint(endpoint, described));
    const data = pageData(about, shown, described);
    let pages: { readonly public: HttpResponse; readonly local: HttpResponse } | undefined;
    return {
      start: async () => {
        template ??= readTemplate().catch((error) => {
          template = undefined;
          throw error;
        });
        const page = await template;
        const isOperated = operatorToken !== undefined;
        pages = {
          public: pageReply(page, data),
          local: pageReply(page, isOperated ? { ...data, isOperated } : data),
        };
      },
      routes: [
        {
          method: 'GET',
          path: '/',
          admit: true,
          handle: (_request, exchange) => {
            if (pages === undefined) throw new Error('the explorer was not started');
            return isLocal(exchange) ? pages.local : pages.public;
          },
        },
        ...(operatorToken === undefined ? [] : [operatorRoute(operatorToken, services)]),
      ],
    };
  },
});
