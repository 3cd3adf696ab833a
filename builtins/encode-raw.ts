import {
  type ApiResponse,
  definePlugin,
  type Encoded,
  type JsonText,
  keccak256,
  Refusal,
  toHex,
} from '../plugins-sdk/index.ts';
import type { Awaitable } from '../plugins-sdk/kernel.ts';
import { keys } from '../plugins-sdk/keys.ts';
import { CanonicalJsonError } from '../plugins-sdk/lib/json/canonical-json.ts';
import { canonicalText } from '../plugins-sdk/lib/json/canonical-text.ts';
import { LongResponse } from '../plugins-sdk/results/long-response.ts';

function refusalOf(error: unknown): unknown {
  if (!(error instanceof CanonicalJsonError)) return error;
  return new Refusal(502, 'API call failed', { reason: error.message, failureClass: 'encode' });
}

function encoded(value: JsonText, bytes: Uint8Array): Encoded {
  return { bytes: toHex(keccak256(bytes)), field: 'rawData', value };
}

async function encodeLong(response: LongResponse): Promise<Encoded> {
  const { text, bytes } = await response.canonical();
  return encoded(text, bytes);
}

/** @throws Refusal 502 */
function encode(response: ApiResponse): Awaitable<Encoded> {
  const fail = (error: unknown): never => {
    throw refusalOf(error);
  };
  if (LongResponse.is(response)) return encodeLong(response).catch(fail);
  try {
    const text = canonicalText(response.data);
    return encoded(text, Buffer.from(text.json));
  } catch (error) {
    return fail(error);
  }
}

const rawData = {
  description:
    'What the upstream says: any JSON value. What is signed in place of `data` is the keccak256 of its canonical JSON text (RFC 8785)',
};

/** The answer as it is, for endpoints without an encoding: what gets signed is the hash of its canonical JSON text. */
export const encodeRaw = definePlugin({
  name: 'encode-raw',
  openapi: () => ({
    answers: { Raw: { rawData } },
    operation: (endpoint) => {
      return keys.encoding.of(endpoint) === undefined ? { answer: { kind: 'Raw', text: 'signed JSON' } } : undefined;
    },
  }),
  setup: () => ({
    hooks: {
      encode: (response, _, { endpoint }) => (keys.encoding.of(endpoint) === undefined ? encode(response) : undefined),
    },
  }),
});
