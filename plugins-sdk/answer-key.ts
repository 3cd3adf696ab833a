import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { encodingChoice, requestHash, resolvedParameters } from './context-keys.ts';
import type { Exchange } from './kernel.ts';

/**
 * What distinguishes an answer from all others that the same config gives: its endpoint, the value of every parameter and
 * what the client chose of the encoding. For those who keep answers, from `validate` on. Values of parameters may be secret
 * and of any length, so it is a hash: 43 characters of base64url.
 *
 * It says nothing of the signer, nor of what is not in the endpoint's ID, such as headers and plugins.
 */
export function answerKey(exchange: Exchange): string {
  const { values } = resolvedParameters.require(exchange);
  // Each by itself: a value may be nested as deep as canonical JSON allows. No value has an empty text.
  const texts = values.map((value) => (value === undefined ? '' : canonicalJson(value)));
  const choice = encodingChoice.get(exchange);
  // A receipt also tells apart what asks the same, such as a factor given as a number or as a text.
  const asked = requestHash.get(exchange);
  // No JSON text holds a line feed, and an endpoint has a fixed number of them.
  const further = [choice === undefined ? undefined : JSON.stringify(choice), asked].filter((one) => one !== undefined);
  const text = [exchange.endpoint.id, ...texts, ...further].join('\n');
  return hash('sha256', text, 'base64url');
}
