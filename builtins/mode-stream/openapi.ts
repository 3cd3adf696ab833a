import { type DescribedMode, noStore, refTo, withMembers } from '../../plugins-sdk/openapi.ts';

const mediaType = 'text/event-stream';

export const mode: DescribedMode = {
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
