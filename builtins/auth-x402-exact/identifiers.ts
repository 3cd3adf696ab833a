import { hash } from 'node:crypto';
import { Refusal } from '../../plugins-sdk/index.ts';
import { memberAt } from '../shared/described.ts';
import type { Payment } from './payload.ts';

/** The extension as the public library declares it. */
export const identifierExtension = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
};
export const PAYMENT_IDENTIFIER = 'payment-identifier';

const ID = /^[A-Za-z0-9_-]{16,128}$/;

/** The identifier that a client has given its payment. @throws Refusal 400 */
export function identifierIn({ extensions }: Payment): string | undefined {
  const id = memberAt(extensions, PAYMENT_IDENTIFIER, 'info', 'id');
  if (id === undefined) return undefined;
  if (typeof id === 'string' && ID.test(id)) return id;
  throw new Refusal(400, 'Invalid payment identifier');
}

/** Under which an answer is kept for the payer who has given its payment an identifier. */
export function keyOfIdentifier({ requirements, authorization }: Payment, id: string): string {
  return hash('sha256', [requirements.network, authorization.from.toLowerCase(), id].join(' '));
}
