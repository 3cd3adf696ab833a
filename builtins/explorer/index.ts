import { readFile } from 'node:fs/promises';
import { configKey, definePlugin, type HttpResponse, Type } from '../../plugins-sdk/index.ts';
import { detailsOf, openapiKey } from '../shared/discovery.ts';
import { pageData } from './data.ts';
import { publicEndpoint } from './endpoint.ts';
import { pageReply } from './reply.ts';

/** The origin goes into the Content Security Policy, where nothing of it may end a directive. */
const Operator = Type.Object(
  {
    url: Type.String({
      pattern: '^https?://[A-Za-z0-9.-]+(?::\\d{1,5})?(?:/[^?#\\s]*)?$',
      description: 'The base of another service with the same endpoints',
    }),
    signer: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$', description: 'The address that signs there' }),
  },
  { additionalProperties: false },
);
const Operators = Type.Object(
  {
    operators: Type.Array(Operator, {
      minItems: 1,
      maxItems: 20,
      description: 'Others whom the page asks, too, to show how far the answers are apart',
    }),
  },
  { additionalProperties: false },
);

const explorerKey = configKey(
  'settings',
  'explorer',
  Type.Optional(
    Type.Union([Type.Boolean(), Operators], {
      description: 'Serves a page at / that shows the endpoints, calls them and checks signatures; default false',
    }),
  ),
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
  budget: 'none',
  keys: [explorerKey],
  setup({ config, endpoints, node, describe }) {
    const chosen = explorerKey.in(config) ?? false;
    if (chosen === false) return {};
    const operators = chosen === true ? {} : chosen;
    const { title, description } = detailsOf(config).info;
    const about = {
      node,
      openapi: (openapiKey.in(config) ?? false) !== false,
      ...(title && { title }),
      ...(description && { description }),
      ...operators,
    };
    const described = describe();
    const shown = endpoints.map((endpoint) => publicEndpoint(endpoint, described));
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
