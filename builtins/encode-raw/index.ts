import { CanonicalJsonError } from '../../lib/json/canonical-json.ts';
import { canonicalText } from '../../lib/json/json-text.ts';
import { keys } from '../../plugins-sdk/config.ts';
import { type ApiResponse, definePlugin, type Encoded, type Endpoint, toHex } from '../../plugins-sdk/index.ts';
import { keccak256 } from '../../plugins-sdk/signing.ts';
import { namesOf } from '../shared/described.ts';
import { failed } from '../shared/upstream.ts';
import { openApiPart } from './openapi.ts';

/** Hashes the canonical JSON of an answer. @throws Refusal 502 if the answer has none */
function encode(response: ApiResponse): Encoded {
  try {
    const value = canonicalText(response.data);
    return { bytes: toHex(keccak256(Buffer.from(value.json))), field: 'rawData', value };
  } catch (error) {
    throw error instanceof CanonicalJsonError ? failed(error.message, 'encode') : error;
  }
}

function recommend(endpoints: readonly Endpoint[]): string | undefined {
  const raw = endpoints.filter((endpoint) => keys.encoding.of(endpoint) === undefined);
  if (raw.length === 0) return undefined;
  return `encoding for ${namesOf(raw)}: raw answers carry numbers as doubles, an encoding signs every digit`;
}

/** Passes the answer on for endpoints without an encoding; the hash of its canonical JSON text is signed. */
export const encodeRaw = definePlugin({
  name: 'encode-raw',
  required: true,
  recommend,
  openapi: () => openApiPart,
  setup: () => ({
    hooks: {
      encode: (response, _, { endpoint }) => (keys.encoding.of(endpoint) === undefined ? encode(response) : undefined),
    },
  }),
});
