import { answerHeaders, definePlugin } from '../../plugins-sdk/index.ts';
import { mode } from './openapi.ts';

const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' };
const last = { done: true };

/** The signed answer in one server-sent event (WHATWG HTML, section 9.2); errors stay plain HTTP. */
export const modeStream = definePlugin({
  name: 'mode-stream',
  modes: ['stream'],
  openapi: () => ({ modes: { stream: mode } }),
  setup: () => ({
    hooks: {
      present: {
        stream: async (run, exchange) => {
          const body = `data: ${(await run()).with(last).json}\n\n`;
          return { status: 200, headers: { ...answerHeaders.get(exchange), ...headers }, body };
        },
      },
    },
  }),
});
