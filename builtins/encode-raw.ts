import { setImmediate } from 'node:timers/promises';
import {
  type ApiResponse,
  CanonicalJsonError,
  canonicalText,
  canonicalTextInSteps,
  definePlugin,
  type Encoded,
  type JsonText,
  keccak256,
  Refusal,
  toHex,
} from '../plugins-sdk/index.ts';

/** Characters of JSON text up to which one pass over the value is a matter of a few milliseconds. */
const AT_ONCE = 64 * 1024;

function refusalOf(error: unknown): unknown {
  if (!(error instanceof CanonicalJsonError)) return error;
  return new Refusal(502, 'API call failed', { reason: error.message });
}

function encoded(value: JsonText): Encoded {
  return { bytes: toHex(keccak256(Buffer.from(value.json))), field: 'rawData', value };
}

async function encodeLarge({ data }: ApiResponse): Promise<Encoded> {
  // Parsing the text has just taken its share of this turn of the event loop.
  await setImmediate();
  return encoded(await canonicalTextInSteps(data));
}

/** The answer as it is, for endpoints without an encoding: what gets signed is the hash of its canonical JSON text. */
export const encodeRaw = definePlugin({
  name: 'encode-raw',
  budget: 'none',
  required: true,
  setup: () => ({
    hooks: {
      encode: async (response) => {
        try {
          if (response.text === undefined || response.text.length > AT_ONCE) return await encodeLarge(response);
          return encoded(canonicalText(response.data));
        } catch (error) {
          throw refusalOf(error);
        }
      },
    },
  }),
});
