import { answerHeaders, definePlugin } from '../plugins-sdk/index.ts';
import { type DescribedMode, noStore, refTo, withMembers } from '../plugins-sdk/openapi.ts';

const mediaType = 'text/event-stream';
const headers = { 'Content-Type': mediaType, 'Cache-Control': 'no-store' };
const last = { done: true };

const described: DescribedMode = {
  title: 'the answer comes as a server-sent event',
  schemas: (answers) =>
    Object.fromEntries(
      Object.entries(answers).map(([kind, answer]) => [
        `${kind}Frame`,
        {
          ...withMembers(answer, { done: { const: true } }),
          description: `The data of the one event. ${answer.description}`,
        },
      ]),
    ),
  responses: (kind, text) => ({
    200: {
      description: `One server-sent event with the answer: ${text}`,
      headers: noStore,
      mediaType,
      schema: {
        type: 'string',
        pattern: '^data: \\{.*\\}\\n\\n$',
        contentMediaType: mediaType,
        contentSchema: refTo('schemas', `${kind}Frame`),
      },
    },
  }),
};

/** The signed answer in one server-sent event (WHATWG HTML, section 9.2); errors stay plain HTTP. */
export const modeStream = definePlugin({
  name: 'mode-stream',
  modes: ['stream'],
  openapi: () => ({ modes: { stream: described } }),
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
