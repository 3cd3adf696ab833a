import { Refusal } from '../../plugins-sdk/index.ts';

export const NAME = 'X-Api-Key';

export const refusals = {
  missing: () => new Refusal(401, 'Missing X-Api-Key header'),
  wrong: () => new Refusal(401, 'Invalid API key'),
};
