import { definePlugin, type Route } from '../../plugins-sdk/index.ts';
import { openApiPart } from './openapi.ts';
import { openMcp } from './serve.ts';
import { checkMcp, mcpKey, settingsIn } from './settings.ts';

/** The most bytes of a message, as of a request to an endpoint. */
const BODY_LIMIT = 65_536;

/**
 * Serves the endpoints as tools to agents (Model Context Protocol, streamable HTTP). It keeps no state between two messages
 * of a client, so any process may answer the next one. Off unless `settings.mcp` is set.
 */
export const mcp = definePlugin({
  name: 'mcp',
  keys: [mcpKey],
  check: (context) => [...checkMcp(context)],
  openapi: openApiPart,
  setup(services) {
    const settings = settingsIn(services.config);
    if (settings === undefined) return {};
    const { path } = settings;
    let answer: Awaited<ReturnType<typeof openMcp>>;
    const messages: Route = {
      ...{ method: 'POST', path, admit: 'asked', maxBody: BODY_LIMIT },
      // Nothing is asked before the start.
      handle: (request, exchange) => answer(request, exchange),
    };
    return {
      start: async () => {
        answer = await openMcp(services, settings);
      },
      routes: [messages],
    };
  },
});
