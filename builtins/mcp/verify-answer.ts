import type { Tool } from '@modelcontextprotocol/server';
import { recoverAddress } from '../../lib/eth/eip191.ts';
import type { Recover } from '../../verify/response.ts';
import { VERIFY_TOOL } from './settings.ts';

/** The most signatures of an answer, each of which costs a recovery. The service's answers have two during a key rotation. */
const MOST_SIGNATURES = 4;
const TOO_MANY = `signatures must have at most ${MOST_SIGNATURES} entries`;
const NO_ADDRESS = 'signer must be an address, with the right checksum if it has any';

const text = (description: string) => ({ type: 'string', description });

/** The tool that checks whether an answer is signed, and by which address. */
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

/** Verifies an answer for the tool. @param own the expected signer if the call names none. */
export async function verifyAnswer(own: string, { answer, signer = own }: Readonly<Record<string, unknown>>) {
  const verdict = await verdictOn(answer, String(signer));
  return { content: [{ type: 'text' as const, text: JSON.stringify(verdict) }], structuredContent: verdict };
}

async function verdictOn(answer: unknown, node: string) {
  const invalid = (reason: string) => ({ valid: false, signer: null, reason });
  const signatures: unknown = Object(answer).signatures;
  if (Array.isArray(signatures) && signatures.length > MOST_SIGNATURES) return invalid(TOO_MANY);
  // Loaded here, since no other plugin needs the verifier and its curve.
  const verified = (await import('../../verify/response.ts')).verifyResponse(answer, { node }, recoverNatively);
  if (verified.ok) return { valid: true, signer: verified.signer };
  return invalid(verified.reason === 'options' ? NO_ADDRESS : verified.message);
}

/** Recovers a signer with the native library, many times faster than the JavaScript of clients: agents may send many answers. */
const recoverNatively: Recover = (digest, signature) => {
  try {
    return { address: recoverAddress(Buffer.from(digest.slice(2), 'hex'), signature) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : 'it belongs to no public key' };
  }
};
