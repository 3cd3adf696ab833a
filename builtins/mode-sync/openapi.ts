import { type DescribedMode, refTo } from '../../plugins-sdk/openapi.ts';

export const mode: DescribedMode = {
  title: 'the answer comes at once',
  responses: (kind, text) => ({
    200: { description: `The answer: ${text}`, schema: refTo('schemas', `${kind}Answer`) },
  }),
};
