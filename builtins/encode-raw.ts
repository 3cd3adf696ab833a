import {
  type ApiResponse,
  CanonicalJsonError,
  canonicalText,
  definePlugin,
  type Encoded,
  type JsonText,
  keccak256,
  keys,
  LongResponse,
  Refusal,
  toHex,
} from '../plugins-sdk/index.ts';

function refusalOf(error: unknown): unknown {
  if (!(error instanceof CanonicalJsonError)) return error;
  return new Refusal(502, 'API call failed', { reason: error.message });
}

function encoded(value: JsonText, bytes: Uint8Array): Encoded {
  return { bytes: toHex(keccak256(bytes)), field: 'rawData', value };
}

async function encode(response: ApiResponse): Promise<Encoded> {
  if (LongResponse.is(response)) {
    const { text, bytes } = await response.canonical();
    return encoded(text, bytes);
  }
  const text = canonicalText(response.data);
  return encoded(text, Buffer.from(text.json));
}

const rawData = {
  description:
    'What the upstream says: any JSON value. What is signed in place of `data` is the keccak256 of its canonical JSON text (RFC 8785)',
};

/** The answer as it is, for endpoints without an encoding: what gets signed is the hash of its canonical JSON text. */
export const encodeRaw = definePlugin({
  name: 'encode-raw',
  budget: 'none',
  openapi: () => ({
    answers: { Raw: { rawData } },
    operation: (endpoint) => {
      return keys.encoding.of(endpoint) === undefined ? { answer: { kind: 'Raw', text: 'signed JSON' } } : undefined;
    },
  }),
  setup: () => ({
    hooks: {
      encode: async (response, _, { endpoint }) => {
        if (keys.encoding.of(endpoint) !== undefined) return undefined;
        try {
          return await encode(response);
        } catch (error) {
          throw refusalOf(error);
        }
      },
    },
  }),
});
