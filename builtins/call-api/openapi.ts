import type { Responses } from '../../plugins-sdk/openapi.ts';
import { failed, mayRetryAfter } from '../shared/upstream.ts';
import { busy } from './slots.ts';

/** The failures of every endpoint. */
export const failures: Responses = {
  502: {
    description: 'The upstream gave no answer that can be signed',
    errors: [failed('', 'body').message],
    headers: mayRetryAfter('Seconds that the upstream wants to be left alone, where it says so'),
  },
  503: { description: 'Too many upstream calls at once', errors: [busy('').message] },
};
