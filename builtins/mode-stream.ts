import { definePlugin } from '../plugins-sdk/index.ts';

const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' };

/** The signed answer in one server-sent event (WHATWG HTML, section 9.2); errors stay plain HTTP. */
export const modeStream = definePlugin({
  name: 'mode-stream',
  budget: 'none',
  modes: ['stream'],
  setup: () => ({
    hooks: {
      deliver: {
        stream: async (run) => ({ status: 200, headers, body: `data: ${(await run()).with({ done: true }).json}\n\n` }),
      },
    },
  }),
});
