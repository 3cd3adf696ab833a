import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import { verifyResponse } from '../../verify/response.ts';
import { VERIFY_TOOL } from './settings.ts';

const NO_ADDRESS = 'signer must be an address, with the right checksum if it has any';

const text = (description: string) => ({ type: 'string', description });

/** The tool that says whether an answer is signed, and by whom. */
export const verifyTool: Tool = {
  name: VERIFY_TOOL,
  title: 'Verify a signed answer',
  description:
    'Checks the signature of an answer, such as the structuredContent of another tool. It cannot tell whether this service ' +
    'itself is honest: for that, verify in your own program.',
  inputSchema: {
    type: 'object',
    properties: {
      answer: { type: 'object', description: 'The whole answer, as it came' },
      signer: text('The address that must have signed; without it the signer of this service'),
    },
    required: ['answer'],
  },
  outputSchema: {
    type: 'object',
    properties: {
      valid: { type: 'boolean' },
      signer: { type: ['string', 'null'], description: 'Who signed, where the answer is valid' },
      reason: text('Why it is not valid'),
    },
    required: ['valid', 'signer'],
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
};

/** @param own the signer where none is named. */
export function verifyAnswer(own: string, { answer, signer = own }: Readonly<Record<string, unknown>>): CallToolResult {
  const verified = verifyResponse(answer, { node: String(signer) });
  const verdict = verified.ok
    ? { valid: true, signer: verified.signer }
    : { valid: false, signer: null, reason: verified.reason === 'options' ? NO_ADDRESS : verified.message };
  return { content: [{ type: 'text', text: JSON.stringify(verdict) }], structuredContent: verdict };
}
